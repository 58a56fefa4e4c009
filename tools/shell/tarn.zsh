#compdef tarn
# zsh completion for tarn. tools/dev/cli_page.py makes it from the help texts.

(( $+functions[_tarn_kernels] )) || _tarn_kernels() {
  local -a kernels=(${=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p')})
  compadd -a kernels
}

_tarn() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C '--help[Show the help]' '--version[Show the version]' '1:command:->command' '*::argument:->arguments'
  case $state in
    command)
      local -a commands=(
        'run:Generate text after a prompt (causal_lm) or from sources (seq2seq)'
        'classify:Classify texts, with a classification model'
        'fill:Fill the gaps of a text, with a masked_lm model'
        'eval:Measure the quality of a model'
        'bench:Measure tokens per second by depth and threads, and the share of the read bandwidth'
        'tokenize:Turn text into token ids, or ids into text'
        'inspect:Show what a model contains, or what this machine can run'
        'state:Show what saved states hold, or in what two of them differ'
        'help:Show the help of a command'
      )
      _describe command commands
      ;;
    arguments)
      case $words[1] in
      run)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        '(-p --prompt)'{-p+,--prompt=}'[Prompt, or the source of a seq2seq model]:TEXT: ' \
        '(-f --file)'{-f+,--file=}'[Read the prompt, or sources, one per line, from a file]:FILE:_files' \
        ''--tokens='[Prompt or source as token ids, for example 1,2,3]:IDS: ' \
        ''--raw'[Keep the newline at the end of a prompt from a file or standard input]' \
        ''--plain'[Read special tokens in the text, such as <|endoftext|>, as plain text]' \
        '(-n --n-predict)'{-n+,--n-predict=}'[Generate at most N tokens]:N: ' \
        '(-i --interactive)'{-i,--interactive}'[Read turns from the terminal or from lines of standard input, and answer each]' \
        ''--chat'[Format the prompt, or every turn of -i, with the model'\''s chat template, and write the answer alone]' \
        ''--system='[Instructions to the model before the conversation, in place of the template'\''s default]:TEXT: ' \
        '*'--stop='[End the output before the first TEXT in it, which may span several tokens]:TEXT: ' \
        '(-e --escape)'{-e,--escape}'[Read escape sequences, such as \\n and \\u00e9, in -p, --stop and --system]' \
        ''--batch='[Sources per batch]:N: ' \
        '(-q --quiet)'{-q,--quiet}'[Write no statistics and no progress to standard error]' \
        ''--no-echo'[Do not repeat the prompt in the output]' \
        ''--jsonl'[Write a line of JSON for each event instead of the text]' \
        ''--load-state='[Go on from the state in FILE]:FILE:_files' \
        ''--save-state='[Write the state at the end to FILE]:FILE:_files' \
        ''--compact-state'[Round the states of --save-state and /save to int8]' \
        ''--prompt-cache='[Save states of each prompt in the directory DIR]:DIR:_files -/' \
        ''--prompt-cache-bytes='[If the states in DIR take more than N bytes, remove the least recently used ones]:N: ' \
        ''--speculate='[Guess up to N tokens at a time from the text so far and check them in one run]:N: ' \
        ''--draft='[A smaller model with the same tokenizer, which also guesses tokens]:FILE:_files' \
        ''--json-stats='[Write times, memory and the reason of the end as JSON]:FILE:_files' \
        '(-s --seed)'{-s+,--seed=}'[Seed of the random draws]:N: ' \
        '*'--logit-bias='[Add BIAS to the logit of token ID, for example 10=-5]:ID=BIAS: ' \
        '*'--ban='[Never draw token ID]:ID: ' \
        ''--grammar='[Write only what the rules in FILE allow (GBNF)]:FILE:_files' \
        ''--json-schema='[Write only JSON that is valid by the schema in FILE]:FILE:_files' \
        ''--print-grammar'[Write the rules of --json-schema, for --grammar or a C program, and end]' \
        ''--grammar-states='[Number of states that a grammar may have]:N: ' \
        ''--grammar-work='[Number of steps that the creation of a grammar may take]:N: ' \
        ''--repeat-penalty='[Divide positive logits of recent tokens by R, multiply negative ones]:R: ' \
        ''--frequency-penalty='[Subtract F from the logit of a recent token for each time that it occurs]:F: ' \
        ''--presence-penalty='[Subtract S from the logit of a recent token]:S: ' \
        ''--repeat-last-n='[Number of tokens that the three penalties call recent, those of the prompt included]:N: ' \
        ''--dry-multiplier='[DRY]:M: ' \
        ''--dry-base='[DRY]:B: ' \
        ''--dry-allowed-length='[DRY]:N: ' \
        ''--dry-last-n='[DRY]:N: ' \
        '*'--dry-breaker='[DRY]:ID: ' \
        ''--top-n-sigma='[Keep logits of at least the largest one minus S standard deviations]:S: ' \
        ''--top-k='[Keep the N most probable tokens]:N: ' \
        ''--typical-p='[Keep the fewest tokens whose probabilities sum to P, first those whose surprise is nearest to its mean]:P: ' \
        ''--top-p='[Keep the fewest tokens whose probabilities sum to P]:P: ' \
        ''--min-p='[Drop tokens less probable than P times the most probable one]:P: ' \
        ''--xtc-probability='[XTC]:P: ' \
        ''--xtc-threshold='[XTC]:P: ' \
        ''--temp='[Temperature]:T: ' \
        ''--dynatemp-range='[Let the temperature vary by R]:R: ' \
        ''--dynatemp-exponent='[Exponent of the normalised entropy, which chooses the temperature in the range]:E: ' \
        ''--mirostat='[2]:N: ' \
        ''--mirostat-tau='[Mirostat]:T: ' \
        ''--mirostat-eta='[Mirostat]:E: ' \
        ''--logprobs='[Write a line of JSON for each token instead of the text]:N: ' \
        ''--beam='[Beams per source]:N: ' \
        ''--length-penalty='[Exponent A of the score log p / ((5 + length) / 6)^A of an output]:A: ' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      classify)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        '(-p --prompt)'{-p+,--prompt=}'[Text]:TEXT: ' \
        '(-f --file)'{-f+,--file=}'[One text a line]:FILE:_files' \
        ''--tokens='[Text as token ids, for example 1,2,3]:IDS: ' \
        '(-k --top-k)'{-k+,--top-k=}'[Show the N most probable labels]:N: ' \
        ''--batch='[Texts at a time]:N: ' \
        ''--json'[Print one JSON object]' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      fill)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        '(-p --prompt)'{-p+,--prompt=}'[Text with gaps]:TEXT: ' \
        '(-f --file)'{-f+,--file=}'[Read the text from a file]:FILE:_files' \
        ''--tokens='[Text as token ids, for example 1,2,3]:IDS: ' \
        ''--mask='[What marks a gap]:value:(TEXT ID)' \
        '(-k --top-k)'{-k+,--top-k=}'[Show the N most probable tokens per gap]:N: ' \
        ''--json'[Print one JSON object]' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      eval)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        '*'{-f+,--file=}'[Text]:FILE:_files' \
        '*'--choices='[Questions instead of texts]:FILE:_files' \
        ''--begin='[Skip the first N tokens]:N: ' \
        ''--tokens='[Read at most N tokens]:N: ' \
        ''--block='[Reset the model before every N tokens]:N: ' \
        ''--stride='[Begin a block every N tokens, so that blocks overlap]:N: ' \
        ''--against='[Compare with this model]:MODEL:_files -g "*.tarn"' \
        ''--logits='[Write the logits after every token to a .npy file]:FILE:_files' \
        '(-s --seed)'{-s+,--seed=}'[Seed of the choice of hidden tokens]:N: ' \
        ''--mask='[Token id that hides a token]:N: ' \
        '(-n --n-predict)'{-n+,--n-predict=}'[Longest output, in tokens]:N: ' \
        ''--batch='[Lines per batch]:N: ' \
        ''--json'[Print one JSON object]' \
        ''--beam='[Beams per source]:N: ' \
        ''--length-penalty='[Exponent A of the score log p / ((5 + length) / 6)^A of an output]:A: ' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      bench)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '*'{-m+,--model=}'[Model files]:FILE:_files -g "*.tarn"' \
        '(-p --n-prompt)'{-p+,--n-prompt=}'[Tokens of the prompt, or of each source]:N,...: ' \
        '(-n --n-gen)'{-n+,--n-gen=}'[Steps of the decode test]:N,...: ' \
        '*'--pg='[Test a prompt of P tokens and N steps after it, timed together]:P,N: ' \
        '(-d --n-depth)'{-d+,--n-depth=}'[Tokens that the sequence has before a test]:N,...: ' \
        ''--batch='[Sources per batch]:N: ' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N,...: ' \
        '(-r --repetitions)'{-r+,--repetitions=}'[Repetitions of each test]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        '(-o --output)'{-o+,--output=}'[Format of the rows]:value:(md csv json jsonl)' \
        ''--plot='[Draw tokens/s and memory by depth into an SVG file]:FILE:_files' \
        ''--profile'[Repeat each test once more and report its time per kind of op (not with csv)]' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '*:FILE:_files -g "*.tarn"'
        ;;
      tokenize)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        '(-p --prompt)'{-p+,--prompt=}'[Text]:TEXT: ' \
        '(-f --file)'{-f+,--file=}'[Read the text, or ids, from a file]:FILE:_files' \
        ''--tokens='[Input of --detokenize as token ids, for example 1,2,3]:IDS: ' \
        ''--ids'[Print the ids alone, in one line]' \
        ''--offsets'[Print where in the text each token lies, in bytes]' \
        ''--json'[Print one JSON object with ids and offsets, or with the text]' \
        ''--jsonl'[Read lines {"text"]' \
        ''--no-special'[Without the ids that the tokenizer puts before and after a text]' \
        ''--detokenize'[Turn ids into text]' \
        ''--plain'[Read special tokens in the text, such as <|endoftext|>, as plain text]' \
        ''--keep-special'[Keep special tokens in the text]' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      inspect)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model file]:FILE:_files -g "*.tarn"' \
        ''--json'[Print one JSON object]' \
        ''--cpu'[Show kernels, fast cores and default threads of this machine]' \
        ''--ops'[Show the ops. If none of --ops, --states, --tensors and --graph is given, ops, states and tensors are shown]' \
        ''--states'[Show the states]' \
        ''--tensors'[Show the tensors]' \
        ''--graph='[Draw the programs into an SVG file]:FILE:_files' \
        ''--batch='[Sequences of the session whose memory is shown]:N: ' \
        '(-t --threads)'{-t+,--threads=}'[Threads]:N: ' \
        ''--chunk='[Tokens per prefill chunk]:N: ' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:FILE:_files -g "*.tarn"'
        ;;
      state)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '(-m --model)'{-m+,--model=}'[Model of the states]:FILE:_files -g "*.tarn"' \
        ''--json'[Print one JSON object]' \
        ''--isa='[Instruction set of the kernels]:NAME:_tarn_kernels' \
        ''--portable-dense'[Run dense layers with tarn'\''s own kernels instead of XNNPACK]' \
        ''--packed-cache='[Directory that keeps packed weights between starts]:DIR:_files -/' \
        ''--verify'[Check the hash of the weights at every start]' \
        ''--no-verify'[Never check the weights]' \
        ''--max-work='[Refuse a model that needs more than N multiply-adds per token]:N: ' \
        ''--max-packed='[Refuse a model that needs more than N bytes of packed weights]:N: ' \
        '1:value:(info diff)' \
        '*:FILE:_files'
        ;;
      help)
        _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        '1:value:(run classify fill eval bench tokenize inspect state help)'
        ;;
      esac
      ;;
  esac
}

_tarn "$@"
