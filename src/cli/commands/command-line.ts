import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFolder } from '../../core/package-folder.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { reportOf } from '../error-report.ts';

interface ListedCommand {
  /** One line for the list of commands. */
  summary: string;
  /** Loading the whole service takes a second of processor time, so each command loads what it needs. */
  load: () => Promise<{ command: Command }>;
}

/** In the order of `annals --help`. */
const groups: Record<string, Record<string, ListedCommand>> = {
  'Run it': {
    serve: { summary: 'run the service', load: () => import('./serve.ts') },
    demo: { summary: 'run the service with the history of an invented shop', load: () => import('./demo.ts') },
    migrate: { summary: 'bring the database to the current schema', load: () => import('./migrate.ts') },
    distribute: {
      summary: 'spread the tenants over the workers of a Citus cluster',
      load: () => import('./distribute.ts'),
    },
  },
  'Tenants and their clients': {
    tenant: { summary: 'create, list and delete tenants', load: () => import('./tenant.ts') },
    client: { summary: 'create, list and revoke OAuth clients', load: () => import('./client.ts') },
    key: { summary: 'create, list and revoke keys of programs', load: () => import('./key.ts') },
    console: { summary: 'print a link that signs in to the console', load: () => import('./console.ts') },
    session: { summary: 'list and end sessions of the console', load: () => import('./session.ts') },
    grant: { summary: 'list and revoke what people allowed programs', load: () => import('./grant.ts') },
    erase: { summary: 'erase a person or a document', load: () => import('./erase.ts') },
    hold: { summary: "suspend the deletion of a tenant's history", load: () => import('./hold.ts') },
    retention: { summary: "delete a tenant's old history", load: () => import('./retention.ts') },
  },
  'Record changes': {
    import: { summary: 'record document changes from a file', load: () => import('./import.ts') },
    recorder: { summary: 'receive changes of running applications over HTTP', load: () => import('./recorder.ts') },
    capture: {
      summary: 'record the changes of a PostgreSQL database from its log',
      load: () => import('./capture.ts'),
    },
    outbox: { summary: 'print SQL for triggers that write changes into an outbox', load: () => import('./outbox.ts') },
    relay: { summary: 'record the changes of an outbox', load: () => import('./relay.ts') },
    mapping: { summary: 'draft and check a mapping', load: () => import('./mapping.ts') },
    rejected: { summary: 'list, retry and drop rejected changes', load: () => import('./rejected.ts') },
  },
  'Follow changes': {
    tail: { summary: 'print the changes of a tenant as they are recorded', load: () => import('./tail.ts') },
    subscription: { summary: 'list, pause and resume subscriptions', load: () => import('./subscription.ts') },
  },
  'Operate it': {
    cluster: { summary: 'move a tenant to another worker of the cluster', load: () => import('./cluster.ts') },
    index: { summary: 'create, list and drop indexes for lists of instances', load: () => import('./indexes.ts') },
    backup: { summary: 'write the database into a file, while the service runs', load: () => import('./backup.ts') },
    restore: { summary: 'restore a backup into an empty database', load: () => import('./restore.ts') },
    proof: { summary: 'make the key that seals histories, print verifier keys', load: () => import('./proof.ts') },
    receipt: { summary: "list what was done with a tenant's history", load: () => import('./receipt.ts') },
    witness: { summary: 'sign checkpoints of logs on another machine', load: () => import('./witness.ts') },
    verify: { summary: 'verify the proof of a history, without a database', load: () => import('./verify.ts') },
    secrets: { summary: 're-encrypt stored secrets with the newest key', load: () => import('./secrets.ts') },
  },
};

const commands = new Map(Object.values(groups).flatMap((group) => Object.entries(group)));

/** Runs the command of the arguments and returns the exit code: 0 done, 1 failed, 2 wrong usage (contract 1). */
export async function runCommandLine(args: string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined) throw new UsageError('no command was given');
    if (name === '--help' || name === '-h' || name === 'help') return answer(io, help());
    if (name === '--version') return answer(io, await version());
    const listed = commands.get(name);
    if (listed === undefined)
      throw new UsageError(`unknown command ${name}; the commands are ${[...commands.keys()].join(', ')}`);
    const { command } = await listed.load();
    if (asksForHelp(rest)) return answer(io, command.help);
    return await command.run(rest, io);
  } catch (error) {
    const { lines, code } = reportOf(error, name !== undefined && commands.has(name) ? name : undefined);
    for (const line of lines) io.tell(line);
    return code;
  }
}

function answer(io: CommandIo, text: string): number {
  io.answer(text);
  return 0;
}

function help(): string {
  const list = Object.entries(groups).map(([title, group]) => {
    const lines = Object.entries(group).map(([name, { summary }]) => `  ${name.padEnd(13)}${summary}`);
    return `${title}:\n${lines.join('\n')}`;
  });
  return `Usage: annals COMMAND [...]

Annals keeps the change history of platforms with many tenants and answers queries about it.

${list.join('\n\n')}

  annals COMMAND --help   usage of a command, with an example
  annals --version        the version

Example:
  annals demo`;
}

async function version(): Promise<string> {
  const manifest: { version: string } = JSON.parse(await readFile(join(packageFolder(), 'package.json'), 'utf8'));
  return manifest.version;
}

function asksForHelp(args: string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).some((argument) => argument === '--help' || argument === '-h');
}
