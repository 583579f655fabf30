import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { type Command, UsageError } from './command.ts';

/**
 * Node's `parseArgs` with messages for the user of the command; those of Node address its author. Throws a UsageError.
 *
 * @example
 * parseCommand('client list', { args, options: { tenant: { type: 'string' } } }).values.tenant;
 */
export function parseCommand<const Options extends ParseArgsOptionsConfig>(
  command: string,
  { args, options, allowPositionals = false }: { args: string[]; options: Options; allowPositionals?: boolean },
) {
  const { tokens } = parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true });
  const clear: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'option') {
      const fault = faultOf(token, options);
      if (fault !== undefined) throw new UsageError(`${command} ${fault}`);
      clear.push(token.value === undefined ? `--${token.name}` : `--${token.name}=${token.value}`);
    } else if (token.kind === 'positional') {
      if (!allowPositionals) throw new UsageError(`${command} takes no ${token.value}`);
      clear.push(token.value);
    } else {
      clear.push('--');
    }
  }
  return parseArgs({ args: clear, options, allowPositionals: true });
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

/** What is wrong with an option, worded to follow the command's name; undefined if it is valid. */
function faultOf(
  { name, rawName, value, inlineValue }: OptionToken,
  options: ParseArgsOptionsConfig,
): string | undefined {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option === undefined) {
    const known = Object.keys(options).map((text) => `--${text}`);
    return `has no option ${rawName}${known.length === 0 ? '' : `; there is ${known.join(', ')}`}`;
  }
  if (option.type === 'boolean') return value === undefined ? undefined : `takes ${rawName} without a value`;
  if (value === undefined) return `needs a value after ${rawName}`;
  // Most likely the value was forgotten, and this is the next option.
  if (inlineValue !== true && value.startsWith('--')) return `needs a value after ${rawName}, and was given ${value}`;
  return undefined;
}

/** The only operand. Throws a UsageError with the message if there is none, or more than one. */
export function onlyOperand([operand, ...others]: readonly string[], message: string): string {
  if (operand === undefined || others.length > 0) throw new UsageError(message);
  return operand;
}

/** The `run` of a command whose first argument names an action. */
export function runAction(command: string, actions: Readonly<Record<string, Command['run']>>): Command['run'] {
  return async ([name, ...args], io) => {
    const run = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined;
    if (run !== undefined) return await run(args, io);
    const known = new Intl.ListFormat('en', { type: name === undefined ? 'disjunction' : 'conjunction' }).format(
      Object.keys(actions).map((action) => `${command} ${action}`),
    );
    throw new UsageError(
      name === undefined ? `${command} needs an action: ${known}` : `${command} has no action ${name}; it has ${known}`,
    );
  };
}
