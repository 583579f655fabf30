import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { memberOf } from '../../../src/providers/members.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { messagesFormat } from '../../support/vendor/vendor-formats.ts';
import { startOpenai } from '../openai/openai-server.ts';

const program = process.env.CLAUDE_CODE_PATH;

async function start() {
  const { vendor, server, tenantWithKeys, close } = await startOpenai();
  onTestFinished(close);
  await tenantWithKeys('acme');
  return { vendor, server, token: await server.token('acme'), folder: temporaryFolder() };
}

/** What Claude Code says to a prompt. */
async function say(
  prompt: string,
  { folder, baseUrl, credential }: { folder: string; baseUrl: string; credential: Record<string, string> },
): Promise<string> {
  const claude = spawn(program ?? '', ['-p', prompt, '--allowedTools', 'Bash'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      ANTHROPIC_BASE_URL: `${baseUrl}/anthropic/acme`,
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
      ...credential,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 100_000,
  });
  const closed = once(claude, 'close');
  const said = await text(claude.stdout);
  await closed;
  return said;
}

describe.skipIf(program === undefined)('Claude Code', { timeout: 120_000 }, () => {
  test.each(['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'])(
    'with its credential in %s changes a file by two turns of /v1/messages',
    async (variable) => {
      const { vendor, server, token, folder } = await start();
      const usage = { input: 10, output: 5 };
      const input = { command: 'echo after > file.txt', description: 'Change the file' };
      vendor.behave(({ bodyText, body }) => {
        const isAsked = (body.tools ?? []).length > 0 && !bodyText.includes('"tool_result"');
        const toolCall = isAsked ? { id: 'toolu_1', name: 'Bash', input } : undefined;
        return {
          kind: 'events',
          events: messagesFormat.events({ text: 'Changed.', usage, ...(toolCall && { toolCall }) }),
        };
      });
      await writeFile(join(folder, 'file.txt'), 'before\n');
      const { baseUrl } = server;
      expect(await say('Change the file.', { folder, baseUrl, credential: { [variable]: token } })).toContain(
        'Changed.',
      );
      expect(await readFile(join(folder, 'file.txt'), 'utf8')).toBe('after\n');
      const listed = server.logLines.filter((line) => line.includes('"/anthropic/acme/v1/models"'));
      expect(listed.join()).toContain('"status":200');
      expect(vendor.requests.length).toBeGreaterThanOrEqual(2);
      for (const { url, headers, body } of vendor.requests) {
        expect(url).toBe('/v1/messages?beta=true');
        expect(headers).toMatchObject({
          'x-api-key': 'sk-anthropic',
          'anthropic-beta': expect.stringContaining('claude-code-20250219'),
        });
        expect(headers.authorization).toBeUndefined();
        expect(memberOf(memberOf(body, 'metadata'), 'user_id')).toEqual(expect.any(String));
      }
    },
  );

  test('tells that a budget is used up, and does not try again', async () => {
    const { vendor, server, token, folder } = await start();
    const budget = { id: 'b', period: 'day', limitTokens: 10 };
    expect((await server.call('/usage/acme/budgets', { token, json: budget })).status).toBe(201);
    const { baseUrl } = server;
    const said = await say('Hello.', { folder, baseUrl, credential: { ANTHROPIC_AUTH_TOKEN: token } });
    expect(said).toContain('of the budget b, which has 10 tokens left');
    expect(server.logLines.filter((line) => line.includes('"/anthropic/acme/v1/messages"'))).toHaveLength(1);
    expect(vendor.requests).toEqual([]);
  });
});
