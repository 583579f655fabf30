import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startOpenai } from '../openai/openai-server.ts';

const { vendor, server, tenantWithKeys } = closeAfterAll(await startOpenai());
await tenantWithKeys('acme');
const token = await server.token('acme');

/** What Claude Code 2.1.332 sends by default. */
const betas =
  'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,per-turn-control-2026-07-01,' +
  'mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,effort-2025-11-24';
const cached = { type: 'ephemeral' };
const tools = ['Agent', 'Bash', 'Edit', 'Read', 'ToolSearch', 'DeferredToolPlaceholder', 'Write'].map(
  (name, index) => ({
    name,
    description: 'A tool.',
    input_schema: { type: 'object', properties: { file_id: { type: 'string' } } },
    ...(index > 4 && { defer_loading: true }),
    ...(index === 2 && { eager_input_streaming: true }),
  }),
);
const userId = JSON.stringify({ device_id: 'e0'.repeat(32), account_uuid: '', session_id: crypto.randomUUID() });
const turn = {
  model: 'claude-opus-5-5',
  messages: [
    { role: 'user', content: [{ type: 'text', text: '<system-reminder>', cache_control: cached }] },
    { role: 'system', content: 'Effort.', output_config: { effort: 'medium' } },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'c2ln' },
        { type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: { query: 'x' }, caller: { type: 'direct' } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          tool_use_id: 'toolu_1',
          type: 'tool_result',
          content: [{ type: 'tool_reference', tool_name: 'Write' }],
          is_error: false,
          cache_control: cached,
        },
      ],
    },
  ],
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332; cc_entrypoint=cli;' },
    { type: 'text', text: 'You are an agent.', cache_control: cached },
  ],
  tools,
  metadata: { user_id: userId },
  max_tokens: 128_000,
  thinking: { type: 'adaptive', display: 'omitted' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
  stream: true,
};

test.each([
  ['messages', turn],
  ['messages/count_tokens', { model: turn.model, messages: turn.messages, system: turn.system, tools }],
])('the requests of Claude Code to %s pass as they came', async (path, body) => {
  const response = await server.call(`/anthropic/acme/v1/${path}?beta=true`, {
    token,
    headers: {
      'anthropic-beta': betas,
      'anthropic-version': '2023-06-01',
      'anthropic-dangerous-direct-browser-access': 'true',
      'x-app': 'cli',
      'x-stainless-retry-count': '0',
    },
    json: body,
  });
  expect(response.status, await response.clone().text()).toBe(200);
  const sent = vendor.requests.at(-1);
  expect(sent).toMatchObject({ url: `/v1/${path}?beta=true`, bodyText: JSON.stringify(body) });
  expect(sent?.headers).toMatchObject({ 'anthropic-beta': betas, 'anthropic-version': '2023-06-01' });
  expect(Object.keys(sent?.headers ?? {}).filter((name) => /^x-(?!api-key)|dangerous/.test(name))).toEqual([]);
});
