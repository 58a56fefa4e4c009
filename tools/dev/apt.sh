# Other suites and architectures of the distribution, asked with a private configuration: the machine's own lists and packages
# stay untouched, signatures are checked as ever, and no host is named here. Sourced by the scripts beside it.
#
#   apt_configure FOLDER TYPE SUITE...   FOLDER gets sources of TYPE (deb or deb-src) for the suites; sets apt_options
#   apt_update FOLDER ARCHITECTURE SUITE   reads the list of binary packages; sets apt_options, for apt-cache too
#   apt_download FOLDER PACKAGE...   downloads packages of that list into FOLDER/got
#   apt_fetch FOLDER ARCHITECTURE SUITE PACKAGE...   both

# Writes the machine's own archive entry, turned into entries of TYPE for the given suites, into $1/parts.
apt_configure() {  # folder type suites...
  local root=$1 type=$2 codename s f; shift 2
  mkdir -p "$root/parts" "$root/lists/partial" "$root/cache/archives/partial" "$root/got"
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  for s in "$@"; do
    for f in /etc/apt/sources.list.d/*.sources; do
      [ -f "$f" ] || continue
      # deb822: the first enabled stanza whose suites name this release and whose components name main.
      awk -v RS= -v type="$type" -v suite="$s" -v release="$codename" '
        function field(name,   i) {
          for (i = 1; i <= n; i++) if (tolower(line[i]) ~ "^" name ":") return " " substr(line[i], length(name) + 2) " "
        }
        {
          gsub(/(^|\n)#[^\n]*/, ""); sub(/^\n+/, ""); gsub(/\n[ \t]+/, "\001 ")
          n = split($0, line, "\n")
          if (field("suites") !~ "[ \001]" release "[ \001]" || field("components") !~ /[ \001]main[ \001]/ ||
              tolower(field("enabled")) ~ /no/) next
          print "Types: " type "\nSuites: " suite "\nComponents: main"
          for (i = 1; i <= n; i++)
            if (tolower(line[i]) !~ /^(types|suites|components|enabled):/) { gsub(/\001/, "\n", line[i]); print line[i] }
          exit
        }' "$f" > "$root/parts/$s.sources"
      [ ! -s "$root/parts/$s.sources" ] || continue 2
    done
    rm -f "$root/parts/$s.sources"
    # One-line style, options kept.
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
      sed -nE "s/^deb[[:space:]]+((\[[^]]*\][[:space:]]+)?[^c[:space:]][^[:space:]]*)[[:space:]]+${codename:-none}[[:space:]]+main.*/$type \1 $s main/; T; p; q" \
      > "$root/parts/$s.list"
  done
  # Check-Valid-Until: the pins do not age, so a mirror that stands still will do.
  apt_options=(-q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$root/parts" -o Dir::State::Lists="$root/lists"
               -o Dir::Cache="$root/cache" -o Acquire::Check-Valid-Until=false)
}

apt_update() {  # folder architecture suite
  local root=$1 architecture=$2 suite=$3
  apt_configure "$root" deb "$suite"
  apt_options+=(-o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State::status=/dev/null
                -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Languages=none)
  apt-get "${apt_options[@]}" update
}

apt_download() {  # folder packages...
  local root=$1; shift
  (cd "$root/got" && apt-get "${apt_options[@]}" download "$@")
}

apt_fetch() {  # folder architecture suite packages...
  local root=$1 architecture=$2 suite=$3; shift 3
  apt_update "$root" "$architecture" "$suite" && apt_download "$root" "$@"
}
