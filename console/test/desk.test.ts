import { readFileSync } from 'node:fs';
import type { Agent, Job, McpTools, RequestLog } from '@annals/client';
import { describe, expect, test } from 'vitest';
import { quoted } from '../../src/query/written.ts';
import { durationText } from '../src/components/numbers.ts';
import { directionOf, nextSort } from '../src/components/table.tsx';
import { programsOf } from '../src/connect/programs.ts';
import { draftOf, emptyDraft, faultsOf, inputOf, partOf } from '../src/desk/agents/agent-draft.ts';
import { bytesBeyondRoom } from '../src/desk/agents/tool-servers.ts';
import { sumCalls } from '../src/desk/costs/sum-calls.ts';
import { turnsOf } from '../src/desk/logs/session-turns.ts';
import { troubleOf } from '../src/overview/trouble.ts';

const stored: Agent = {
  id: 'claims',
  name: { en: 'Claims', de: 'Reklamationen' },
  enabled: false,
  disabledReason: 'The provider refuses the key.',
  userPrompt: 'Answer.',
  triggers: [{ type: 'endpoint' }],
  llmConfig: { provider: 'openai', model: 'm', temperature: 0.2, apiKey: '********' },
  nativeTools: [{ id: 'change-history' }],
  metadata: { version: 7, createdAt: '2026-11-01T00:00:00.000Z', modifiedAt: '2026-11-01T00:00:00.000Z' },
};

const good = { ...emptyDraft, id: 'desk', name: [{ language: 'en', text: 'Desk' }] };

describe('the form of an agent', () => {
  test('an unchanged agent is sent as it was, with its version and the mask of its key', () => {
    const { id: _, disabledReason: _reason, metadata: _metadata, ...same } = stored;
    expect(inputOf(draftOf(stored), stored)).toEqual({ ...same, metadata: { version: 7 } });
    expect(faultsOf(draftOf(stored), stored)).toEqual({});
  });

  test('a key stays with its provider: another provider needs a key of its own', () => {
    const moved = { ...draftOf(stored), provider: 'anthropic' as const };
    expect(faultsOf(moved, stored).apiKey).toBe('This provider needs your key.');
    const input = inputOf({ ...moved, apiKey: 'sk-new' }, stored);
    expect(input.llmConfig).toMatchObject({ provider: 'anthropic', apiKey: 'sk-new' });
    expect(inputOf({ ...moved, provider: 'shared' }, stored).llmConfig).not.toHaveProperty('apiKey');
  });

  test.each([
    ['temperature', '2', undefined],
    ['temperature', '2.1', 'A number from 0 to 2.'],
    ['temperature', 'warm', 'A number from 0 to 2.'],
    ['maxTokens', '1000000', undefined],
    ['maxTokens', '1000001', 'A whole number from 1 to 1,000,000.'],
    ['maxTokens', '1.5', 'A whole number from 1 to 1,000,000.'],
    ['contextTokens', '256', undefined],
    ['contextTokens', '255', 'A whole number from 256 to 10,000,000.'],
    ['id', 'ü'.repeat(127), undefined],
    ['id', 'ü'.repeat(128), 'At most 255 bytes of UTF-8.'],
    ['id', '', 'Write an id, such as price-desk. It cannot be changed later.'],
  ] as const)('%s %j is reported: %s', (part, text, fault) => {
    expect(faultsOf({ ...good, [part]: text }, undefined)[part]).toBe(fault);
  });

  test.each([
    ['https://models.example.com/v1', true],
    ['http://10.0.0.1:11434', true],
    ['models.example.com', false],
    ['ftp://models.example.com', false],
    ['https://user@models.example.com', false],
    ['https://models.example.com/?a', false],
  ])('the address %s of a self-hosted server is taken: %s', (address, taken) => {
    const draft = { ...good, provider: 'self_hosted' as const, model: 'm', address };
    expect(faultsOf(draft, undefined).address === undefined).toBe(taken);
  });

  test('each language is in a name once, and has a text', () => {
    const en = { language: 'en', text: 'Desk' };
    expect(faultsOf({ ...good, name: [] }, undefined).name).toBeDefined();
    expect(faultsOf({ ...good, name: [en, en] }, undefined).name).toBe('Each language can be listed once.');
    expect(faultsOf({ ...good, name: [en, { language: 'de', text: ' ' }] }, undefined).name).toBeDefined();
  });

  test('faults of the service are shown at their parts of the form', () => {
    expect(['llmConfig.selfHostedParams.url', 'llmConfig.apiKey', 'name.en', 'triggers.0'].map(partOf)).toEqual([
      'address',
      'apiKey',
      'name',
      undefined,
    ]);
  });
});

test('ticked tools are too long from the first byte beyond the room, and others do not count', () => {
  const offer = (room: number): McpTools => ({
    server: 'docs',
    room,
    tools: [
      { name: 'a', state: 'new', bytes: 60 },
      { name: 'b', state: 'new', bytes: 40 },
      { name: 'c', state: 'missing' },
    ],
  });
  expect(bytesBeyondRoom(offer(100), new Set(['a', 'b', 'c']))).toBe(0);
  expect(bytesBeyondRoom(offer(99), new Set(['a', 'b', 'c']))).toBe(1);
  expect(bytesBeyondRoom(offer(60), new Set(['a']))).toBe(0);
  expect(bytesBeyondRoom(offer(-5), new Set())).toBe(0);
});

test('sums have every digit of costs', () => {
  const calls = ['0.000000000001', '12.1', '0.2'].map((costUsd) => ({ inputTokens: 2, outputTokens: 1, costUsd }));
  expect(sumCalls(calls)).toEqual({
    inputTokens: 6,
    outputTokens: 3,
    lacksTokens: false,
    costUsd: '12.300000000001',
    lacksCost: false,
  });
});

test('unknown amounts of calls are marked, and known ones are summed', () => {
  const known = { inputTokens: 2, outputTokens: 1, costUsd: '1' };
  expect(sumCalls([known, { ...known, costUsd: null }])).toMatchObject({ costUsd: '1', lacksCost: true });
  expect(sumCalls([known, { inputTokens: 2, costUsd: '1' }])).toMatchObject({ outputTokens: 1, lacksTokens: true });
  expect(sumCalls([{ ...known, costUsd: null }])).toMatchObject({ costUsd: undefined, lacksCost: true });
});

test('a click on a heading sorts up, a second one down, and another field starts with up', () => {
  expect(nextSort('', 'name')).toBe('name:ASC');
  expect(nextSort('name:ASC', 'name')).toBe('name:DESC');
  expect(nextSort('name:desc', 'name')).toBe('name:ASC');
  expect(nextSort('name:DESC,_id:ASC', 'amount')).toBe('amount:ASC');
  expect(directionOf('name', 'name')).toBe('ASC');
  expect(directionOf('name', 'nam')).toBeUndefined();
});

test('any text in a query means itself', () => {
  expect(quoted('a "b" \\ * (c)')).toBe('"a \\"b\\" \\\\ * (c)"');
});

test('durations are in the unit that fits', () => {
  expect([0, 999, 1_000, 59_940, 185_000].map(durationText)).toEqual([
    '0 ms',
    '999 ms',
    '1.0 s',
    '59.9 s',
    '3 min 5 s',
  ]);
});

test('the requests of a session have the texts of jobs and of this tab, and others have none', () => {
  const log = (requestId: string) => ({ id: requestId, requestId }) as RequestLog;
  const job = { requestId: 'r1', request: 'Asked by a job', message: 'Answered' } as Job;
  const turn = { message: 'Asked here', answer: 'Ans', state: 'stopped', requestId: 'r2', error: undefined } as const;
  const conversation = { sessionId: 's', agentId: 'a', turns: [turn] };
  const turns = turnsOf([log('r1'), log('r2'), log('r3')], { jobs: [job], conversation });
  expect(turns.map(({ message, answer }) => [message, answer])).toEqual([
    ['Asked by a job', 'Answered'],
    ['Asked here', 'Ans'],
    [undefined, undefined],
  ]);
});

test('the programs of the guide have lines for the address and the tenant of the session', () => {
  const guide = readFileSync(new URL('../../docs/ai-tools.md', import.meta.url), 'utf8');
  const programs = programsOf(guide, 'https://history.shop.example/annals/mcp/shop');
  expect(programs.map(({ name }) => name)).toEqual(['Claude Code', 'Cursor', 'Visual Studio Code', 'Codex']);
  for (const { lines, where } of programs) {
    expect(lines).toContain('https://history.shop.example/annals/mcp/shop');
    expect(lines).not.toMatch(/example\.com|acme/);
    expect(where).toMatch(/ANNALS_KEY|key/);
  }
  for (const json of programs.slice(1, 3)) expect(JSON.parse(json.lines)).toBeDefined();
});

test('disabled agents come first, then those with most failures, each cause once', () => {
  const failed = [
    { triggerAgentId: 'b', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c' },
  ];
  expect(troubleOf([{ id: 'a', disabledReason: 'Refused' }], failed)).toEqual([
    { id: 'a', disabledReason: 'Refused', failures: 0, causes: [] },
    { id: 'c', disabledReason: undefined, failures: 3, causes: ['timeout'] },
    { id: 'b', disabledReason: undefined, failures: 1, causes: ['timeout'] },
  ]);
});
