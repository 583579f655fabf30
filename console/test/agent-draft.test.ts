import type { Agent } from '@annals/client';
import { describe, expect, test } from 'vitest';
import { draftOf, emptyDraft, faultsOf, inputOf, partOf } from '../src/desk/agents/agent-draft.ts';

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
  test('an agent that nobody changed is sent as it was, with its version and the mask of its key', () => {
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
  ] as const)('%s %j is told: %s', (part, text, fault) => {
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

  test('each language stands in a name once, and has a text', () => {
    const en = { language: 'en', text: 'Desk' };
    expect(faultsOf({ ...good, name: [] }, undefined).name).toBeDefined();
    expect(faultsOf({ ...good, name: [en, en] }, undefined).name).toBe('Each language can be listed once.');
    expect(faultsOf({ ...good, name: [en, { language: 'de', text: ' ' }] }, undefined).name).toBeDefined();
  });

  test('the fields that the service names are told at their parts of the form', () => {
    expect(['llmConfig.selfHostedParams.url', 'llmConfig.apiKey', 'name.en', 'triggers.0'].map(partOf)).toEqual([
      'address',
      'apiKey',
      'name',
      undefined,
    ]);
  });
});
