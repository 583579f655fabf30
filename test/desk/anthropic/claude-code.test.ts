import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { memberOf } from '../../../src/providers/members.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { messagesFormat } from '../../support/vendor/vendor-formats.ts';
import { startOpenai } from '../openai/openai-server.ts';

const program = process.env.CLAUDE_CODE_PATH;

test.skipIf(program === undefined).each(['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'])(
  'Claude Code with its credential in %s changes a file by two turns of /v1/messages',
  { timeout: 120_000 },
  async (credential) => {
    const { vendor, server, tenantWithKeys, close } = await startOpenai();
    onTestFinished(close);
    await tenantWithKeys('acme');
    const folder = temporaryFolder();
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
    const claude = spawn(program ?? '', ['-p', 'Change the file.', '--allowedTools', 'Bash'], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        ANTHROPIC_BASE_URL: `${server.baseUrl}/anthropic/acme`,
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
        [credential]: await server.token('acme'),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 100_000,
    });
    const closed = once(claude, 'close');
    expect(await text(claude.stdout)).toContain('Changed.');
    await closed;
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
