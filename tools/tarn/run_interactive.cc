// tarn run -i: turns of a user, answers of a model, and commands that begin with '/'.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/integer.h"
#include "tools/common/printable.h"
#include "tools/common/signals.h"
#include "tools/common/suggestion.h"
#include "tools/tarn/conversation.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/line_input.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"

namespace tarn_cli {
namespace {

constexpr char kHelp[] =
    "/save FILE    write the state to a file\n"
    "/load FILE    go on from a state that /save wrote\n"
    "/undo         take back the last turn and its answer, /load or /reset\n"
    "/regen [SEED] write the last answer again, with another seed\n"
    "/reset        begin anew\n"
    "/stats        rates, memory, and how long the text is\n"
    "/help         this list\n"
    "/quit         end, as Ctrl-D\n"
    "A line that ends with \\ goes on with the next one. //TEXT says /TEXT. Ctrl-C stops an answer.\n";

void Tell(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

OutputFormat FormatOf(const RunOptions& options) { return options.jsonl ? OutputFormat::kEvents : OutputFormat::kText; }

class Interaction {
 public:
  Interaction(const RunOptions& options, const Model& model)
      : options_(options),
        model_(model),
        writer_(model, FormatOf(options), options.stop_strings),
        conversation_(options, model, &writer_) {
    if (!options.load_state.empty()) conversation_.Load(options.load_state);
  }

  int Run();
  void Save(const std::string& path) const { conversation_.Save(path); }

 private:
  // A line of the user, with those that it goes on with.
  LineInput::End ReadTurn(std::string* turn);
  void OnLine(const std::string& line);
  void OnCommand(const std::string& name, const std::string& argument);
  // Ends the text of an answer, and keeps what /stats shows.
  void OnAnswer(const GenerationStats& stats);
  void Regenerate(const std::string& seed);
  RunReport ReportOf(const GenerationStats& stats) const;
  void ShowStats() const;
  // How it ends from outside; nothing if it does not.
  std::optional<int> OnSignal(const std::string& line);

  const RunOptions& options_;
  const Model& model_;
  TokenWriter writer_;
  Conversation conversation_;
  std::unique_ptr<LineInput> input_;
  std::optional<GenerationStats> last_;
  bool was_asked_ = false;  // whether the next Ctrl-C at the prompt ends it
  bool has_quit_ = false;
};

int Interaction::Run() {
  if (!options_.quiet) {
    Tell(Format("seed %llu, %s", static_cast<unsigned long long>(conversation_.seed()),
                HowItRuns(model_, conversation_.config()).c_str()));
    Tell("/help lists the commands, Ctrl-C stops an answer, Ctrl-D ends");
  }
  tarn::tools::AskAtCtrlC();
  input_ = LineInput::Create();
  if (!options_.input.is_nothing()) {
    OnAnswer(conversation_.Say(PromptTokens(options_, model_, conversation_.place(), conversation_.tokens()), options_.echo));
  }
  while (!has_quit_ && !writer_.closed()) {
    std::string line;
    const LineInput::End end = ReadTurn(&line);
    if (tarn::tools::Interrupted()) {
      if (const std::optional<int> status = OnSignal(line)) return *status;
      continue;
    }
    was_asked_ = false;
    try {
      if (!line.empty()) OnLine(line);
    } catch (const OutputFailure&) {
      throw;
    } catch (const Failure& failure) {  // a turn or a command that cannot be: the next one may
      Tell("tarn: error: " + tarn::tools::ErrorLine(failure.what()));
      if (options_.jsonl && !WriteStdout(JsonLine({{"event", "error"}, {"message", failure.what()}}))) has_quit_ = true;
    }
    if (end == LineInput::End::kEndOfInput) break;
  }
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

LineInput::End Interaction::ReadTurn(std::string* turn) {
  turn->clear();
  for (const char* prompt = "> ";; prompt = ". ") {
    std::string line;
    const LineInput::End end = input_->Read(prompt, &line);
    *turn += line;
    if (end != LineInput::End::kLine || turn->empty() || turn->back() != '\\') return end;
    turn->back() = '\n';
  }
}

std::optional<int> Interaction::OnSignal(const std::string& line) {
  if (!tarn::tools::InterruptedByCtrlC() || (was_asked_ && line.empty())) return tarn::tools::InterruptedExit();
  tarn::tools::ForgetCtrlC();
  Tell("(Ctrl-C again ends tarn run, as Ctrl-D does)");
  was_asked_ = true;
  return std::nullopt;
}

void Interaction::OnLine(const std::string& line) {
  const bool is_escaped = line.rfind("//", 0) == 0;
  if (line[0] != '/' || is_escaped) {
    const std::string text = line.substr(is_escaped ? 1 : 0) + (options_.raw ? "\n" : "");
    return OnAnswer(conversation_.Say(TurnTokens(model_, options_.turns, text, conversation_.place())));
  }
  const size_t name_end = std::min(line.find(' '), line.size());
  const size_t argument = std::min(line.find_first_not_of(' ', name_end), line.size());
  OnCommand(line.substr(0, name_end), line.substr(argument));
}

void Interaction::OnCommand(const std::string& name, const std::string& argument) {
  static const std::vector<std::string> kNames = {"/save", "/load", "/undo", "/regen", "/reset", "/stats", "/help", "/quit"};
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    throw Failure("the command " + tarn::tools::UnknownName(name, kNames) + "; //TEXT says /TEXT");
  }
  const bool needs_file = name == "/save" || name == "/load";
  if (needs_file && argument.empty()) throw Failure(name + " has no file, expected " + name + " FILE");
  if (!needs_file && name != "/regen" && !argument.empty()) throw Failure(name + " takes nothing, found '" + argument + "'");
  if (name == "/save") {
    conversation_.Save(argument);
    Tell(Format("saved %llu tokens", static_cast<unsigned long long>(conversation_.tokens())));
  } else if (name == "/load") {
    conversation_.Load(argument);
    Tell(Format("loaded %llu tokens", static_cast<unsigned long long>(conversation_.tokens())));
  } else if (name == "/undo") {
    conversation_.Undo();
    Tell(Format("back at %llu tokens", static_cast<unsigned long long>(conversation_.tokens())));
  } else if (name == "/regen") {
    Regenerate(argument);
  } else if (name == "/reset") {
    conversation_.Reset();
    Tell("at the beginning");
  } else if (name == "/stats") {
    ShowStats();
  } else if (name == "/help") {
    std::fputs(kHelp, stderr);
  } else {  // /quit
    has_quit_ = true;
  }
}

void Interaction::Regenerate(const std::string& seed) {
  std::optional<uint64_t> wanted;
  if (!seed.empty()) {
    wanted = tarn::tools::ParseInteger<uint64_t>(seed, 0, UINT64_MAX);
    if (!wanted) throw Failure("/regen: the seed " + tarn::tools::NotInteger<uint64_t>(seed, 0, UINT64_MAX));
  }
  OnAnswer(conversation_.Regenerate(wanted));
}

RunReport Interaction::ReportOf(const GenerationStats& stats) const {
  return {model_, conversation_.config(), stats.prompt_read, conversation_.turn_tokens(), conversation_.seed(), std::nullopt,
          stats};
}

void Interaction::OnAnswer(const GenerationStats& stats) {
  const bool was_read = stats.prompt_read == conversation_.turn_tokens();
  if (was_read) writer_.Finish();
  last_ = stats;
  if (writer_.closed() || (options_.jsonl && !WriteEndEvent(ReportOf(stats)))) {
    has_quit_ = true;  // nobody reads, which Ctrl-C may have asked for
    return;
  }
  tarn::tools::ForgetCtrlC();  // it has stopped the answer
  if (stats.error.status != TARN_OK) throw Failure(std::string("the turn is taken back: ") + stats.error.message);
  if (!was_read) Tell("interrupted: the turn is taken back");
  if (stats.stop == StopReason::kMaxContext) Tell("the context is full: /undo or /reset");
}

void Interaction::ShowStats() const {
  const uint64_t most = model_.info().max_context;
  const std::string of = most == UINT64_MAX ? "" : Format(" of %llu", static_cast<unsigned long long>(most));
  Tell(Format("text        %llu%s tokens", static_cast<unsigned long long>(conversation_.tokens()), of.c_str()));
  Tell(Format("undo        %zu %s, %s", conversation_.kept(), conversation_.kept() == 1 ? "step" : "steps",
              FormatBytes(conversation_.kept_bytes()).c_str()));
  Tell(Format("seed        %llu", static_cast<unsigned long long>(conversation_.seed())));
  if (last_) std::fputs(ReportText(ReportOf(*last_)).c_str(), stderr);
}

}  // namespace

int RunInteractive(const RunOptions& options, const Model& model) {
  if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
    throw Failure(model.path() + ": the model has no tokenizer, which -i needs; expected one with a tokenizer");
  }
  // That it cannot be written should not be found out at the end.
  if (!options.save_state.empty()) tarn::tools::OutputFile(options.save_state, RunInputs(options));
  Interaction interaction(options, model);
  const int status = interaction.Run();
  if (!options.save_state.empty()) interaction.Save(options.save_state);
  return status;
}

}  // namespace tarn_cli
