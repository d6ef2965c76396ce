// The logpjit command: reads the command line, runs one command, and says what
// went wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "cli/failure.hpp"
#include "cli/suggest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* inner : app.get_subcommands({})) {
    names.push_back(inner->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// The innermost command that was named.
const CLI::App& chosen(const CLI::App& app) {
  const auto inner = app.get_subcommands();
  return inner.empty() ? app : chosen(*inner.front());
}

/// "logpjit" or "logpjit COMMAND"
std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr
             ? command.get_name()
             : fmt::format("{} {}", full_name(*command.get_parent()),
                           command.get_name());
}

/// CLI11's sentence, with the flag or command that was probably meant.
std::string usage_fault(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  std::string text = error.what();
  for (const std::string& word : command.remaining(true)) {
    if (word.starts_with('-')) {
      text += suggestion(word.substr(0, word.find('=')), flag_names(command));
    } else if (!command_names(command).empty()) {
      text = fmt::format("'{}' is no command{}", word,
                         suggestion(word, command_names(command)));
    }
  }
  return fmt::format("{} (see '{} --help')", text, full_name(command));
}

int run_action(const Action& action) {
  try {
    const int code = action();
    // What was printed counts only when it got out.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    print_failure("standard output cannot be written");
  } catch (const Error& error) {
    print_failure(error.message(), error.log());
    return exit_code(error.code());
  } catch (const std::exception& error) {
    print_failure(error.what());
  }
  return kFailed;
}

int run_program(int argc, char** argv) {
  CLI::App app("Generated, cached and tuned log-probability kernels.",
               "logpjit");
  app.set_version_flag("--version", LOGPJIT_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  std::vector<std::pair<CLI::App*, Action>> attached;
  for (const Command& command : commands()) {
    CLI::App* inner = app.add_subcommand(std::string(command.name),
                                         std::string(command.summary));
    attached.emplace_back(inner, command.attach(*inner));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    print_failure(usage_fault(app, error));
    return kWrongUsage;
  }
  for (const auto& [inner, action] : attached) {
    if (inner->parsed()) return run_action(action);
  }
  return kWrongUsage;
}

}  // namespace
}  // namespace logpjit::cli

int main(int argc, char** argv) {
  return logpjit::cli::run_program(argc, argv);
}
