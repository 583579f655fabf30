import { UsageError } from './cli/command.ts';
import { command } from './cli/commands/verify.ts';
import { OperatorError } from './core/operator-error.ts';

/** "annals verify" as a program of its own, which is built into one file: an auditor needs nothing else of Annals. */
const { stdin, stdout, stderr } = process;
const [first] = process.argv.slice(2);
if (first === '--help' || first === '-h') stdout.write(`${command.help}\n`);
else {
  try {
    process.exitCode = await command.run(process.argv.slice(2), {
      environment: {},
      stdin,
      stdout,
      stderr,
      answer: (line) => stdout.write(`${line}\n`),
      tell: (line) => stderr.write(`${line}\n`),
      stop: new AbortController().signal,
    });
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof OperatorError)) throw error;
    stderr.write(`annals-verify: ${error.message}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
