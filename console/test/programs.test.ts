import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { programsOf } from '../src/connect/programs.ts';

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
