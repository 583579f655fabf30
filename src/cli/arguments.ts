import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { UsageError } from './command.ts';

/**
 * Reads the arguments of a command as Node's `parseArgs` does, but with its own messages: those of Node are for the
 * author of the command, not for its user. Throws UsageError.
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

/** What is wrong with an option, as it goes on from the name of its command; undefined where nothing is. */
function faultOf(
  { name, rawName, value, inlineValue }: OptionToken,
  options: ParseArgsOptionsConfig,
): string | undefined {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option === undefined) {
    const known = Object.keys(options).map((one) => `--${one}`);
    return `has no option ${rawName}${known.length === 0 ? '' : `; there is ${known.join(', ')}`}`;
  }
  if (option.type === 'boolean') return value === undefined ? undefined : `takes ${rawName} without a value`;
  if (value === undefined) return `needs a value after ${rawName}`;
  // Most likely the value was forgotten, and this is the next option.
  if (inlineValue !== true && value.startsWith('--')) return `needs a value after ${rawName}, and was given ${value}`;
  return undefined;
}

/** The error for an action that the command does not have, or for none at all. */
export function noSuchAction(command: string, action: string | undefined, actions: readonly string[]): UsageError {
  const known = new Intl.ListFormat('en', { type: action === undefined ? 'disjunction' : 'conjunction' }).format(
    actions.map((one) => `${command} ${one}`),
  );
  return new UsageError(
    action === undefined
      ? `${command} needs an action: ${known}`
      : `${command} has no action ${action}; it has ${known}`,
  );
}
