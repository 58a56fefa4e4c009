# bash completion for tarn-convert. tools/dev/cli_page.py makes it from the help texts.

_tarn_convert() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} kind=none words= names= value=1
  # bash cuts --option=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  names='--help --version --output --quant --keep --name --chat-template --state --eval --eval-begin --eval-tokens --eval-block --threads --calibrate --calibrate-tokens --max-loss --force --max-context --window --sinks --shortlist --no-shortlist --write-checkpoint --list-tensors --list-fields --systems --families --random-weights'
  case $option in
    -o | --output | --eval | --calibrate | --shortlist) kind=files ;;
    --quant) kind=words words='f32 f16 int8 int4 int3 int2 auto' ;;
    --keep | --name | --eval-begin | --eval-tokens | --eval-block | -t | --threads | --calibrate-tokens | --max-loss | --max-context | --window | --sinks | --list-fields | --random-weights) kind=none ;;
    --chat-template) kind=words words='chatml qwen2 llama2 llama3 mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken gemma gemma3 zephyr phi3 deepseek rwkv' ;;
    --state) kind=words words='f32 f16 int8' ;;
    *) kind=files value= ;;
  esac
  # What begins with a dash and is no value is an option.
  [[ -n $value || $current != -* ]] || kind=words words=$names
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    models) mapfile -t COMPREPLY < <(compgen -f -X '!*.tarn' -- "$current"; compgen -d -- "$current") ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    directories) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
  esac
  [[ $kind == words ]] || compopt -o filenames 2>/dev/null
}

complete -F _tarn_convert tarn-convert
