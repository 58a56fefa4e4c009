# fish completion for tarn-convert. tools/dev/cli_page.py makes it from the help texts.

complete -c tarn-convert -f
complete -c tarn-convert -s h -l help -d 'Print this help message and exit'
complete -c tarn-convert -l version -d 'Display program version information and exit'
complete -c tarn-convert -s o -l output -r -F -d 'Model file to write (required, but not with --list-tensors)'
complete -c tarn-convert -l quant -x -a 'f32 f16 int8 int4' -d 'Type of matrices'
complete -c tarn-convert -l keep -x -d 'Another type for matrices whose name matches, as PATTERN=TYPE'
complete -c tarn-convert -l name -x -d 'Name of the model'
complete -c tarn-convert -l chat-template -x -a 'chatml qwen2 llama2 llama3 mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken gemma gemma3 zephyr phi3 deepseek rwkv' -d 'Text around the turns of a conversation, in place of the checkpoint\'s chat template'
complete -c tarn-convert -l state -x -a 'f32 f16 int8' -d 'Type of the states'
complete -c tarn-convert -l eval -r -F -d 'Measure the loss on this text in f32 and as written (without tokenizer'
complete -c tarn-convert -l eval-begin -x -d 'Skip the first N tokens'
complete -c tarn-convert -l eval-tokens -x -d 'Read at most N tokens'
complete -c tarn-convert -l eval-block -x -d 'Reset the model before every N tokens'
complete -c tarn-convert -s t -l threads -x -d 'Threads of --eval'
complete -c tarn-convert -l force -d 'Accept --state f16 where it loses more than rounding'
complete -c tarn-convert -l list-tensors -d 'Print the tensors that a checkpoint with this config.json needs'
complete -c tarn-convert -l list-fields -x -d 'Print the fields of config.json (config), of a task, of an attention variant, or of all'
complete -c tarn-convert -l systems -d 'Print the table of attention variants, as Markdown, and exit'
complete -c tarn-convert -l random-weights -x -d 'Write a model with random weights from seed N, without a checkpoint'
complete -c tarn-convert -F
