#include "tools/tarn/habits.h"

#include <cstddef>
#include <initializer_list>

#include "tools/common/command_line.h"

namespace tarn_cli {
namespace {

struct Habit {
  std::initializer_list<const char*> names;
  const char* command;  // the only one that it is about; "": all
  const char* answer;
};

const Habit kHabits[] = {
    {{"-c", "--ctx-size", "--ctx_size", "--n-ctx", "--n_ctx", "--max-context"},
     "",
     "there is no context to size: the state has a fixed size, and a bounded model its own bound (tarn inspect shows it); leave it "
     "out"},
    {{"-ngl", "--gpu-layers", "--n-gpu-layers", "-ts", "--tensor-split", "-sm", "--split-mode", "-mg", "--main-gpu", "--device"},
     "",
     "tarn runs on the CPU; leave it out"},
    {{"-r", "--reverse-prompt"}, "run", "expected --stop TEXT, which ends the text, and with -i the answer"},
    {{"--stop-sequence", "--stop_sequence", "--stop-string"}, "run", "expected --stop TEXT"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "", "expected --chunk N: tokens of a prompt that are read at once"},
    {{"-tb", "--threads-batch"}, "", "prompt and generation use the same threads; expected -t N"},
    {{"--temperature"}, "run", "expected --temp T"},
    {{"--max-tokens", "--max_tokens", "--max-new-tokens", "--max_new_tokens", "--max-length", "--n_predict", "--predict"},
     "run",
     "expected -n N"},
    {{"-ins", "--instruct", "-cnv", "--conversation"}, "run", "expected -i, and --chat for a model with a chat template"},
    {{"--chat-template", "--chat-template-file", "--jinja", "--no-jinja"},
     "run",
     "the model file has its chat template, which tarn-convert reads or takes with --chat-template NAME; expected --chat"},
    {{"-sys", "--system-prompt", "--system_prompt"}, "run", "expected --chat --system TEXT"},
    {{"-if", "--interactive-first"}, "run", "expected -i without a prompt, which waits for one"},
    {{"-no-cnv", "--no-conversation"}, "run", "a conversation is only made with -i; leave it out"},
    {{"--no-display-prompt"}, "run", "expected --no-echo"},
    {{"--color", "--colors"}, "", "colours are on where the output is a terminal, and NO_COLOR=1 switches them off; leave it out"},
    {{"--verbose-prompt"}, "run", "expected the command `tarn tokenize`, which shows the tokens of a text"},
    {{"--session"}, "run", "expected --prompt-cache DIR, or -i with the commands /save FILE and /load FILE"},
    {{"--keep", "--n-keep"}, "run", "nothing is cut from a context: the state holds the whole text; leave it out"},
    {{"--no-context-shift", "--context-shift"}, "", "nothing is cut from a context: the state holds the whole text; leave it out"},
    {{"--mlock", "--no-mmap", "--numa"}, "", "model files are always mapped; leave it out"},
    {{"-fa", "--flash-attn", "-nkvo", "--no-kv-offload", "-ctk", "--cache-type-k", "-ctv", "--cache-type-v", "-dt"},
     "",
     "there is no KV cache of that kind; tarn-convert --state sets the type of the states; leave it out"},
    {{"--log-disable", "--no-perf", "--no-warmup", "--simple-io"}, "run", "expected -q, which writes nothing but the text"},
    {{"--prompt-file", "--prompt_file"}, "run", "expected -f FILE"},
};

}  // namespace

std::string HabitAnswer(const tarn::tools::App& app, const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (app.takes_next(arguments[i])) {
      ++i;
      continue;
    }
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    for (const Habit& habit : kHabits) {
      if (habit.command[0] != '\0' && command != habit.command) continue;
      for (const char* known : habit.names) {
        if (name == known) return command + ": " + name + ": " + habit.answer;
      }
    }
  }
  return "";
}

}  // namespace tarn_cli
