#compdef tarn-convert
# zsh completion for tarn-convert. tools/dev/cli_page.py makes it from the help texts.

(( $+functions[_tarn_kernels] )) || _tarn_kernels() {
  local -a kernels=(${=$(tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p')})
  compadd -a kernels
}

_tarn-convert() {
  _arguments -s -S \
        '(-h --help)'{-h,--help}'[Print this help message and exit]' \
        ''--version'[Display program version information and exit]' \
        '(-o --output)'{-o+,--output=}'[Model file to write, or with --write-checkpoint a directory (required, except with --list-tensors, --list-fields, --systems and --families)]:FILE:_files' \
        ''--quant='[Type of matrices]:value:(f32 f16 int8 int4 int3 int2 auto)' \
        '*'--keep='[Another type for matrices whose name matches, as PATTERN=TYPE]:RULE: ' \
        ''--name='[Name of the model]:NAME: ' \
        ''--chat-template='[Text around the turns of a conversation, in place of the checkpoint'\''s chat template]:value:(chatml qwen2 llama2 llama3 mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken gemma gemma3 zephyr phi3 deepseek rwkv)' \
        ''--state='[Type of the states]:value:(f32 f16 int8)' \
        ''--eval='[Measure the loss on this text in f32 and as written (without tokenizer]:FILE:_files' \
        ''--eval-begin='[Skip the first N tokens]:N: ' \
        ''--eval-tokens='[Read at most N tokens]:N: ' \
        ''--eval-block='[Reset the model before every N tokens]:N: ' \
        '(-t --threads)'{-t+,--threads=}'[Threads of --eval and --calibrate]:N: ' \
        ''--calibrate='[Round int8, int4, int3 and int2 weights so that the outputs of the layers on this text change least]:FILE:_files' \
        ''--calibrate-tokens='[At most N tokens, in blocks from all over the text]:N: ' \
        ''--max-loss='[With --quant auto]:X: ' \
        ''--force'[Accept --state f16 where it loses more than rounding]' \
        ''--max-context='[Published checkpoint]:N: ' \
        ''--window='[Published checkpoint]:N: ' \
        ''--sinks='[With --window]:N: ' \
        ''--shortlist='[Marian'\''s binary shortlist]:FILE:_files' \
        ''--no-shortlist'[A translation can have any token, whatever the directory has]' \
        ''--write-checkpoint'[Write a checkpoint directory in tarn'\''s own layout, F32, in place of a model file]' \
        ''--list-tensors'[Print the tensors that a checkpoint with this config.json needs]' \
        ''--list-fields='[Print the fields of config.json (config), of a task, of an attention variant, or of all]:NAME=config: ' \
        ''--systems'[Print the table of attention variants, as Markdown, and exit]' \
        ''--families'[Print the table of published families, as Markdown, and exit]' \
        ''--random-weights='[Write a model with random weights from seed N, without a checkpoint]:N: ' \
        '1:PATH:_files'
}

_tarn-convert "$@"
