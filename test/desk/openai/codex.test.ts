import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { memberOf } from '../../../src/providers/members.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startOpenai } from './openai-server.ts';

/** Installed by `bench/openai-fidelity`, or elsewhere. */
const installed = join(import.meta.dirname, '../../../bench/openai-fidelity/clients/node_modules/.bin/codex');
const program = process.env.CODEX_PATH ?? (existsSync(installed) ? installed : undefined);

test.skipIf(program === undefined)(
  'Codex changes a file by two turns of /responses',
  { timeout: 120_000 },
  async () => {
    const openai = await startOpenai();
    onTestFinished(() => openai.close());
    await openai.tenantWithKeys('acme');
    const folder = temporaryFolder();
    const call = { cmd: 'echo after > file.txt' };
    const items = [
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'exec_command', arguments: JSON.stringify(call) },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Changed.', annotations: [] }],
      },
    ];
    openai.vendor.behave(() => {
      const item = items[openai.vendor.requests.length - 1];
      const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
      const events = [
        { type: 'response.created', response: { id: 'resp_1' } },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [item], usage } },
      ];
      return {
        kind: 'events',
        events: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
      };
    });
    await writeFile(join(folder, 'file.txt'), 'before\n');
    await writeFile(
      join(folder, 'config.toml'),
      `model = "gpt-5.4"
model_provider = "annals"
[model_providers.annals]
name = "Annals"
base_url = "${openai.server.baseUrl}/openai/acme/v1"
env_key = "ANNALS_KEY"
wire_api = "responses"
`,
    );
    const codex = spawn(
      program ?? '',
      ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', 'Change the file.'],
      {
        cwd: folder,
        env: { ...process.env, CODEX_HOME: folder, HOME: folder, ANNALS_KEY: await openai.server.token('acme') },
        stdio: ['ignore', 'pipe', 'ignore'],
        timeout: 100_000,
      },
    );
    const closed = once(codex, 'close');
    expect(await text(codex.stdout)).toContain('Changed.');
    await closed;
    expect(await readFile(join(folder, 'file.txt'), 'utf8')).toBe('after\n');
    const sent = openai.vendor.requests.map(({ body }) => memberOf(body, 'store'));
    expect(sent).toEqual([false, false]);
  },
);
