import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { annals } from '../support/server/command.ts';

// The keys of the list in src/cli/commands/command-line.ts.
const source = readFileSync(new URL('../../src/cli/commands/command-line.ts', import.meta.url), 'utf8');
const [, list = ''] = /^const groups.*?\{\n(.*?)^\};/ms.exec(source) ?? [];
const commands = [...list.matchAll(/^ {4}(\w+): \{/gm)].map(([, name = '']) => name);

test('--help lists every command on stdout', async () => {
  const { code, stdout, stderr } = await annals(['--help']);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  expect(commands.length).toBeGreaterThan(14);
  for (const command of commands) expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
});

test('--version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(await annals(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

test.each(commands)('%s --help shows its usage with an example, and does nothing else', async (command) => {
  const { code, stdout } = await annals([command, '--help'], { PORT: 'not a port' });
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^Usage: annals ${command}`));
  expect(stdout).toMatch(new RegExp(`Examples?:\n  .*annals ${command}`));
});

test.each([
  [[], 'no command was given'],
  [['sevre'], 'unknown command sevre; the commands are serve, demo, migrate, '],
  [['constructor'], 'unknown command constructor'],
  [['serve', '--port'], 'serve has no option --port'],
  [['demo', '--port'], 'demo has no option --port; there is --ai'],
  [['migrate', 'up'], 'migrate takes no up'],
  [['distribute', 'all'], 'distribute takes no all'],
  [['cluster'], 'cluster needs an action: cluster move'],
  [['cluster', 'move', 'acme'], 'cluster move needs a tenant and a worker'],
  [['cluster', 'move', 'acme', 'a:1', 'b:1'], 'cluster move takes no b:1'],
  [['distribute', '--shards'], 'distribute needs a value after --shards'],
  [['distribute', '--shards', '0'], '--shards must be a whole number from 1 to 1024, and was given 0'],
  [['distribute', '--shards', '1025'], '--shards must be a whole number from 1 to 1024, and was given 1025'],
  [['tenant'], 'tenant needs an action: tenant create, tenant list, or tenant delete'],
  [['tenant', 'drop', 'acme'], 'tenant has no action drop; it has tenant create, tenant list, and tenant delete'],
  [['tenant', 'create'], 'tenant create needs a NAME'],
  [['tenant', 'create', 'acme', 'other'], 'tenant create takes one NAME'],
  [['tenant', 'create', 'Acme'], 'the NAME of a tenant is lower-case letters and digits'],
  [['tenant', 'create', 'a'], 'the NAME of a tenant is lower-case letters and digits'],
  [['client'], 'client needs an action: client create, client list, client narrow, client rotate, or client revoke'],
  [['client', 'create', '--tenant', 'acme'], 'client create needs --tenant and --scope'],
  [['console'], 'console needs an action: console link'],
  [['console', 'open'], 'console has no action open; it has console link'],
  [['console', 'link'], 'console link needs --tenant'],
  [['console', 'link', 'acme'], 'console link takes no acme'],
  [['console', 'link', '--tenant', '--name'], 'console link needs a value after --tenant, and was given --name'],
  [['tenant', 'delete'], 'tenant delete needs a NAME'],
  [['tenant', 'delete', 'acme'], 'tenant delete removes all data of acme for good; add --yes to confirm'],
  [['tenant', 'delete', 'acme', '--force'], 'tenant delete has no option --force; there is --yes'],
  [['tenant', 'delete', 'acme', '--yes=no'], 'tenant delete takes --yes without a value'],
  [['tenant', 'list', 'acme'], 'tenant list takes no acme'],
  [['client', 'create', '--tenant'], 'client create needs a value after --tenant'],
  [
    ['client', 'create', '--tenant', '--scope', 'x'],
    'client create needs a value after --tenant, and was given --scope',
  ],
  [['client', 'list'], 'client list needs --tenant'],
  [['client', 'list', '--all'], 'client list has no option --all; there is --tenant'],
  [['client', 'list', 'acme'], 'client list takes no acme'],
  [['client', 'list', '-x'], 'client list has no option -x; there is --tenant'],
  [['retention', '--tenant', 'acme', '--keep-days', '-1'], 'retention needs --keep-days with a whole number from 1 to'],
  [
    ['retention', '--tenant', 'acme', '--keep-days', '1.5'],
    'retention needs --keep-days with a whole number from 1 to',
  ],
  [['retention', '--keep-days'], 'retention needs a value after --keep-days'],
  [['index', 'create', '--sort'], 'index create needs a value after --sort'],
  [['index', 'create'], 'index create needs --sort or --filters'],
  [['index', 'drop'], 'index drop needs --sort'],
  [['index', 'list', '--sort=a'], 'index list has no option --sort'],
  [['rejected', 'list', 'all'], 'rejected takes no all'],
  [['capture', '--from'], 'capture needs a value after --from'],
  [['secrets', 'show'], 'secrets has no action show; it has secrets reseal'],
  [['client', 'revoke'], 'client revoke needs one CLIENT_ID'],
  [['client', 'rotate'], 'client rotate needs one CLIENT_ID'],
  [['client', 'narrow', 'acme.00000000000000000000'], 'client narrow needs one of --scope, --query, --hide, --actors'],
  [['client', 'narrow', 'acme.00000000000000000000', '--rate', '1'], 'client narrow has no option --rate'],
  [['client', 'narrow', 'acme.00000000000000000000', '--scope', 'all'], 'there is no scope all'],
  [['key', 'rotate', 'x'], 'key rotate needs --tenant and one KEY_ID'],
  [['key', 'narrow', '--tenant', 'acme', 'x', '--rate', '0'], '--rate must be a whole number of requests a second'],
  [['subscription'], 'subscription needs an action: subscription list, subscription pause, or subscription resume'],
  [['subscription', 'pause', 'prices'], 'subscription pause needs --tenant and at least one ID'],
  [['subscription', 'resume', '--tenant', 'acme'], 'subscription resume needs --tenant and at least one ID'],
  [['subscription', 'list', 'acme'], 'subscription list takes no acme'],
  [['mapping', 'check'], 'mapping check needs one FILE'],
  [['backup'], 'backup needs one FILE, or -'],
  [['restore', 'a', 'b'], 'restore needs one FILE, or -'],
  [['import', 'changes.ndjson'], 'import needs --tenant'],
  [['import', '--tenant', 'acme'], 'import needs one FILE'],
])('wrong usage is exit code 2 with one clear line and where to look: annals %j', async (args, message) => {
  const { code, stdout, stderr } = await annals(args);
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr.startsWith(`annals: ${message}`)).toBe(true);
  expect(stderr).toMatch(/^annals: .*\nSee: annals (\w+ )?--help\n$/);
});

test('wrong settings are exit code 2, all of them at once', async () => {
  const { code, stdout, stderr } = await annals(['migrate'], { PORT: 'x', LOG_LEVEL: 'y', DATABASE_URL: 'z' });
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr.trimEnd().split('\n')).toHaveLength(4);
  for (const name of ['PORT', 'LOG_LEVEL', 'DATABASE_URL', 'ANNALS_SECRET_KEY'])
    expect(stderr).toContain(`annals: ${name} `);
});
