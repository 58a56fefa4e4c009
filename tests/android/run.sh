#!/usr/bin/env bash
# examples/android on this machine: compiles library, app and bridge, and runs the tests of this folder in a JVM over libtarn.so.
#
#   run.sh BUILD     the build folder that has lib/libtarn.so, bin/tarn and bin/tarn-convert
set -euo pipefail

build=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
example=$here/../../examples/android
models=$here/../../examples/models
out=$build/test-android
export JAVA_HOME=${JAVA_HOME:-$(dirname "$(dirname "$(realpath "$(command -v javac)")")")}
rm -rf "$out/classes" && mkdir -p "$out/classes"/{library,app,tests}

if [ ! -d "$out/jars" ]; then
  echo "test-android: Maven fetches the framework's classes and JUnit, once (80 MB; log: $out/maven.log)"
  mvn --batch-mode --strict-checksums --file "$here/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$out/jars.partial" > "$out/maven.log" ||
    { cat "$out/maven.log" >&2; exit 1; }
  mv "$out/jars.partial" "$out/jars"
fi
jars=$(printf '%s:' "$out"/jars/*.jar)

cmake -S "$example/tarn/src/main/cpp" -B "$out/jni" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DTARN_BUILD="$build" > "$out/jni.log"
cmake --build "$out/jni" >> "$out/jni.log" || { cat "$out/jni.log" >&2; exit 1; }

compile() {  # release class-path folder sources...
  "$JAVA_HOME/bin/javac" --release "$1" -Xlint:all,-options -Werror -cp "$2" -d "$out/classes/$3" "${@:4}"
}
# Android 7 has the classes of Java 8 and none later: release 8 refuses the others.
compile 8 "$jars" library "$example"/tarn/src/main/java/tarn/*.java
compile 8 "$out/classes/library:$jars" app "$example"/app/src/main/java/tarn/demo/*.java
compile 11 "$out/classes/library:$jars" tests "$here"/tarn/*.java
# The classes that docs/android.md prints.
rm -rf "$out/page" && mkdir -p "$out/page" "$out/classes/page"
python3 - "$here/../../docs/android.md" "$out/page" << 'EOF'
import pathlib, re, sys
page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
for code in re.findall(r"^```java\n(package .*?)^```$", page, re.MULTILINE | re.DOTALL):
    name = re.search(r"^public final class (\w+)", code, re.MULTILINE)[1]
    (pathlib.Path(sys.argv[2]) / f"{name}.java").write_text(code, encoding="utf-8")
EOF
compile 8 "$out/classes/library:$jars" page "$out"/page/*.java
python3 - "$example" << 'EOF'
import pathlib, sys, xml.dom.minidom
for file in pathlib.Path(sys.argv[1]).glob("*/src/main/**/*.xml"):
    xml.dom.minidom.parse(str(file))
EOF

[ -x "$build/bin/tarn-convert" ] || {
  echo "test-android: $build/bin/tarn-convert is missing: make TARN_CMAKE_ARGS=-DTARN_BUILD_TOOLS=ON" >&2
  exit 1
}
"$build/bin/tarn-convert" --random-weights 1 "$here/random.json" -o "$out/random.tarn" --quant f32 > "$out/convert.log"
mkdir -p "$out/template"
sed 's/"vocab_size": 256/"vocab_size": 700/; s/"bytes"/"tokenizer.json"/' "$here/random.json" > "$out/template/config.json"
cp "$here/../data/tokenizers/llama3/tokenizer.json" "$out/template"
"$build/bin/tarn-convert" --random-weights 1 "$out/template/config.json" -o "$out/template.tarn" --quant f32 >> "$out/convert.log"
# After "a": a space, a special token, an emoji of four tokens for single bytes, the end token.
python3 "$here/../support/chain_model.py" "$build/bin/tarn-convert" "$here/../data/tokenizers/llama2/tokenizer.json" \
  "$out/chain.tarn" ▁a ▁ "<unk>" "<0xF0>" "<0x9F>" "<0x98>" "<0x80>" "</s>"
log=$out/tests.log
LD_LIBRARY_PATH=$out/jni "$JAVA_HOME/bin/java" -Xcheck:jni -Xms256m -Xmx256m -XX:+AlwaysPreTouch \
  --add-opens java.base/java.io=ALL-UNNAMED \
  -Dtarn.cli="$build/bin/tarn" -Dtarn.model="$models/shakespeare-rfa-gate-int8.tarn" \
  -Dtarn.random="$out/random.tarn" -Dtarn.template="$out/template.tarn" -Dtarn.chain="$out/chain.tarn" \
  -Dtarn.status="$here/../../runtime/include/tarn/status.h" \
  -cp "$out/classes/tests:$out/classes/library:$jars" \
  org.junit.runner.JUnitCore $(cd "$here" && ls tarn/*Test.java | sed 's/\.java//; s#/#.#g') 2>&1 | tee "$log"
# What -Xcheck:jni finds does not end the JVM.
if grep -A 5 'in native method\|JNI local refs' "$log" > "$out/jni-warnings.log"; then
  echo "test-android: -Xcheck:jni complains:" >&2
  cat "$out/jni-warnings.log" >&2
  exit 1
fi
