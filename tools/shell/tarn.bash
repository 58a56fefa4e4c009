# bash completion for tarn. tools/dev/cli_page.py makes it from the help texts.

_tarn() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} kind=none words= names= value=1
  # bash cuts --option=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W 'run classify fill eval bench tokenize inspect state help --help --version' -- "$current")
    return
  fi
  case ${COMP_WORDS[1]} in
    run)
      names='--help --model --prompt --file --tokens --raw --plain --n-predict --interactive --chat --system --stop --escape --batch --quiet --no-echo --jsonl --load-state --save-state --compact-state --prompt-cache --prompt-cache-bytes --speculate --draft --json-stats --seed --logit-bias --ban --grammar --json-schema --print-grammar --grammar-states --grammar-work --repeat-penalty --frequency-penalty --presence-penalty --repeat-last-n --dry-multiplier --dry-base --dry-allowed-length --dry-last-n --dry-breaker --top-n-sigma --top-k --typical-p --top-p --min-p --xtc-probability --xtc-threshold --temp --dynatemp-range --dynatemp-exponent --mirostat --mirostat-tau --mirostat-eta --logprobs --beam --length-penalty --threads --chunk --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        -p | --prompt | --tokens | -n | --n-predict | --system | --stop | --batch | --prompt-cache-bytes | --speculate | -s | --seed | --logit-bias | --ban | --grammar-states | --grammar-work | --repeat-penalty | --frequency-penalty | --presence-penalty | --repeat-last-n | --dry-multiplier | --dry-base | --dry-allowed-length | --dry-last-n | --dry-breaker | --top-n-sigma | --top-k | --typical-p | --top-p | --min-p | --xtc-probability | --xtc-threshold | --temp | --dynatemp-range | --dynatemp-exponent | --mirostat | --mirostat-tau | --mirostat-eta | --logprobs | --beam | --length-penalty | -t | --threads | --chunk | --max-work | --max-packed) kind=none ;;
        -f | --file | --load-state | --save-state | --draft | --json-stats | --grammar | --json-schema) kind=files ;;
        --prompt-cache | --packed-cache) kind=directories ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        *) kind=models value= ;;
      esac
      ;;
    classify)
      names='--help --model --prompt --file --tokens --top-k --batch --json --threads --chunk --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        -p | --prompt | --tokens | -k | --top-k | --batch | -t | --threads | --chunk | --max-work | --max-packed) kind=none ;;
        -f | --file) kind=files ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    fill)
      names='--help --model --prompt --file --tokens --mask --top-k --json --threads --chunk --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        -p | --prompt | --tokens | -k | --top-k | -t | --threads | --chunk | --max-work | --max-packed) kind=none ;;
        -f | --file) kind=files ;;
        --mask) kind=words words='TEXT ID' ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    eval)
      names='--help --model --file --choices --begin --tokens --block --stride --against --logits --seed --mask --n-predict --batch --json --beam --length-penalty --threads --chunk --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model | --against) kind=models ;;
        -f | --file | --choices | --logits) kind=files ;;
        --begin | --tokens | --block | --stride | -s | --seed | --mask | -n | --n-predict | --batch | --beam | --length-penalty | -t | --threads | --chunk | --max-work | --max-packed) kind=none ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    bench)
      names='--help --model --n-prompt --n-gen --pg --n-depth --batch --threads --repetitions --chunk --output --plot --profile --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        -p | --n-prompt | -n | --n-gen | --pg | -d | --n-depth | --batch | -t | --threads | -r | --repetitions | --chunk | --max-work | --max-packed) kind=none ;;
        -o | --output) kind=words words='md csv json jsonl' ;;
        --plot) kind=files ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    tokenize)
      names='--help --model --prompt --file --tokens --ids --offsets --json --jsonl --no-special --detokenize --plain --keep-special --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        -p | --prompt | --tokens | --max-work | --max-packed) kind=none ;;
        -f | --file) kind=files ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    inspect)
      names='--help --model --json --cpu --ops --states --tensors --graph --batch --threads --chunk --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        --graph) kind=files ;;
        --batch | -t | --threads | --chunk | --max-work | --max-packed) kind=none ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        *) kind=models value= ;;
      esac
      ;;
    state)
      names='--help --model --json --isa --portable-dense --packed-cache --verify --no-verify --max-work --max-packed'
      case $option in
        -m | --model) kind=models ;;
        --isa) kind=words words=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p') ;;
        --packed-cache) kind=directories ;;
        --max-work | --max-packed) kind=none ;;
        state) kind=words words='info diff' value= ;;
        *) kind=files value= ;;
      esac
      ;;
    help)
      names='--help'
      case $option in
        *) kind=words words='run classify fill eval bench tokenize inspect state help' value= ;;
      esac
      ;;
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

complete -F _tarn tarn
