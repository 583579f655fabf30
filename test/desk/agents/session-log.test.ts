import { expect, test } from 'vitest';
import type { SessionLogDocument } from '../../../src/desk/agents/answer-schemas.ts';
import { noteOf, requestLogOf, rolledUp } from '../../../src/desk/agents/request-log.ts';

const at = Date.UTC(2026, 8, 15);

test('the log of a session keeps its latest 500 messages', () => {
  let log: SessionLogDocument | undefined;
  for (let request = 0; request < 101; request += 1) log = withRequest(log, request);
  expect(log?.messages.map(({ message }) => message)).toEqual(
    Array.from({ length: 500 }, (_, index) => `line ${index + 5}`),
  );
  expect(log?.metadata.version).toBe(101);
});

test('the log of a session with 500 messages has all of them', () => {
  let log: SessionLogDocument | undefined;
  for (let request = 0; request < 100; request += 1) log = withRequest(log, request);
  expect(log?.messages).toHaveLength(500);
  expect(log?.messages[0]?.message).toBe('line 0');
});

/** A request of five lines. */
function withRequest(log: SessionLogDocument | undefined, request: number): SessionLogDocument {
  const requestId = `r${request}`;
  const messages = Array.from({ length: 5 }, (_, line) =>
    noteOf({ severity: 'INFO', text: `line ${request * 5 + line}`, agentId: 'desk', requestId, at }),
  );
  const tokens = { prompt: 1, completion: 1 };
  const logged = { id: requestId, requestId, sessionId: 's', agentId: 'desk', messages, duration: 1, tokens, at };
  return rolledUp(log, requestLogOf(logged), { sums: { ...tokens, duration: 1 }, replaced: undefined });
}
