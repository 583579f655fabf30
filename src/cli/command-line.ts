import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFolder } from '../core/package-folder.ts';
import { type Command, type CommandIo, UsageError } from './command.ts';
import { reportOf } from './error-report.ts';

interface ListedCommand {
  /** One line for the list of commands. */
  summary: string;
  /** A command loads only what it needs: to load the whole service takes one second of processor time. */
  load: () => Promise<Command>;
}

const commands: Record<string, ListedCommand> = {
  serve: { summary: 'run the service', load: async () => (await import('./serve-command.ts')).serveCommand },
  migrate: {
    summary: 'bring the database to the current schema',
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
  distribute: {
    summary: 'spread the tenants over the workers of a Citus cluster',
    load: async () => (await import('./distribute.ts')).distributeCommand,
  },
  cluster: {
    summary: 'move a tenant to another worker of the cluster',
    load: async () => (await import('./cluster.ts')).clusterCommand,
  },
  tenant: {
    summary: 'create, list and delete tenants',
    load: async () => (await import('./tenant.ts')).tenantCommand,
  },
  client: {
    summary: 'create, list and revoke OAuth clients',
    load: async () => (await import('./client.ts')).clientCommand,
  },
  import: {
    summary: 'record document changes from a file',
    load: async () => (await import('./import-command.ts')).importCommand,
  },
  capture: {
    summary: 'record the changes of a PostgreSQL database from its log',
    load: async () => (await import('./capture.ts')).captureCommand,
  },
  recorder: {
    summary: 'receive changes of running applications over HTTP',
    load: async () => (await import('./recorder.ts')).recorderCommand,
  },
  outbox: {
    summary: 'print SQL for triggers that write changes into an outbox',
    load: async () => (await import('./outbox.ts')).outboxCommand,
  },
  relay: {
    summary: 'record the changes of an outbox',
    load: async () => (await import('./relay.ts')).relayCommand,
  },
  rejected: {
    summary: 'list, retry and drop rejected changes',
    load: async () => (await import('./rejected.ts')).rejectedCommand,
  },
  mapping: {
    summary: 'check a mapping',
    load: async () => (await import('./mapping-command.ts')).mappingCommand,
  },
  retention: {
    summary: "delete a tenant's old history",
    load: async () => (await import('./retention.ts')).retentionCommand,
  },
  index: {
    summary: 'create, list and drop indexes for lists of instances',
    load: async () => (await import('./index-command.ts')).indexCommand,
  },
  console: {
    summary: 'print a link that signs in to the console',
    load: async () => (await import('./console.ts')).consoleCommand,
  },
  demo: {
    summary: 'run the service with the history of an invented shop',
    load: async () => (await import('./demo.ts')).demoCommand,
  },
  backup: {
    summary: 'write the database into a file, while the service runs',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  restore: {
    summary: 'restore a backup into an empty database',
    load: async () => (await import('./restore.ts')).restoreCommand,
  },
  secrets: {
    summary: 'encrypt stored secrets with the newest key',
    load: async () => (await import('./secrets.ts')).secretsCommand,
  },
};

/** The order of `annals --help`. Every command stands in one group. */
const groups: readonly { title: string; names: readonly string[] }[] = [
  { title: 'Run it', names: ['serve', 'demo', 'migrate', 'distribute'] },
  { title: 'Tenants and their clients', names: ['tenant', 'client', 'console', 'retention'] },
  {
    title: 'Record changes',
    names: ['import', 'recorder', 'capture', 'outbox', 'relay', 'mapping', 'rejected'],
  },
  { title: 'Look after it', names: ['cluster', 'index', 'backup', 'restore', 'secrets'] },
];

/** Runs the command of the arguments and returns the exit code: 0 done, 1 failed, 2 wrong usage (contract 1). */
export async function runCommandLine(args: string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined) throw new UsageError('no command was given');
    if (name === '--help' || name === '-h' || name === 'help') return answer(io, help());
    if (name === '--version') return answer(io, await version());
    const listed = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (listed === undefined)
      throw new UsageError(`unknown command ${name}; the commands are ${Object.keys(commands).join(', ')}`);
    const command = await listed.load();
    if (asksForHelp(rest)) return answer(io, command.help);
    return await command.run(rest, io);
  } catch (error) {
    const { lines, code } = reportOf(error, name !== undefined && Object.hasOwn(commands, name) ? name : undefined);
    for (const line of lines) io.tell(line);
    return code;
  }
}

function answer(io: CommandIo, text: string): number {
  io.answer(text);
  return 0;
}

function help(): string {
  const list = groups.map(({ title, names }) => {
    const lines = names.map((name) => `  ${name.padEnd(11)}${commands[name]?.summary}`);
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
