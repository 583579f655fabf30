import type { McpTools } from '@annals/client';
import { expect, test } from 'vitest';
import { bytesBeyondRoom } from '../src/desk/agents/tool-servers.ts';

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
