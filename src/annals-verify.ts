import { UsageError } from './cli/command.ts';
import { command } from './cli/commands/verify.ts';
import { runWithOutput } from './cli/output.ts';
import { OperatorError } from './core/errors.ts';

/** "annals verify" as a program of its own, which is built into one file: an auditor needs nothing else of Annals. */
const args = process.argv.slice(2);
process.exitCode = await runWithOutput({ environment: {}, stop: new AbortController().signal }, async (io) => {
  if (args[0] === '--help' || args[0] === '-h') {
    io.answer(command.help);
    return 0;
  }
  try {
    return await command.run(args, io);
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof OperatorError)) throw error;
    io.tell(`annals-verify: ${error.message}`);
    return error instanceof UsageError ? 2 : 1;
  }
});
