import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { BundleLine } from '../../../src/proof/bundle/lines.ts';
import { readBundle } from '../../../src/proof/bundle/read-bundle.ts';
import { formatLine } from '../../../src/proof/bundle/write-bundle.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { buildGo, hasGo } from '../../support/server/go-program.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { bundleOf, checkpointOf, entryOf, first, goneOf, key, type Leaf, noneOf, receiptOf } from './made-bundles.ts';

const run = promisify(execFile);
const folder = temporaryFolder();

const program = buildGo(join(import.meta.dirname, 'second-verifier')) ?? '';

// The long form: SECOND_VERIFIER_ENTRIES=10000
const entries = Number(process.env.SECOND_VERIFIER_ENTRIES ?? 600);

const redactions = [
  ['actor'],
  ['name', 'before', 'after'],
  ['entityId', 'relatedEntityId'],
  ['identity'],
  ['actor', 'actorId'],
  ['onBehalfOfId'],
] as const;

test.skipIf(!hasGo)(
  'a verifier in Go, written from docs/proof.md alone, agrees on every position (needs golang-go)',
  async () => {
    const leaves: (Leaf & { text?: string })[] = [first];
    while (leaves.length < entries) {
      const position = leaves.length + 1;
      const turn = position % 50;
      if (turn === 7) leaves.push(goneOf(position));
      else if (turn === 11) leaves.push(noneOf(position));
      else if (turn === 13)
        leaves.push(receiptOf(position, { what: 'erasure', positions: [[position - 3, position - 1]] }));
      else if (turn % 12 === 0) leaves.push(entryOf(position, redactions[position % redactions.length]));
      else leaves.push(entryOf(position));
    }
    const made = bundleOf(leaves);
    // Tampered with: a field, a salt, the hash of a hidden field, the text of a receipt.
    const lines = made.lines.map((line): BundleLine => {
      if (line.kind === 'receipt text' && line.position % 100 === 63)
        return { ...line, text: line.text.replace('{', '{ ') };
      if (line.kind !== 'entry') return line;
      // A value of one member as that of another, and an entry without its version.
      if (line.position % 64 === 16) {
        const [actorId = null, name = null] = line.fields.slice(11);
        return { ...line, fields: line.fields.with(11, name).with(12, actorId) };
      }
      if (line.position % 64 === 36) return { ...line, version: 1 };
      if (line.position % 97 === 0) return { ...line, fields: line.fields.with(8, 'somebody') };
      if (line.position % 89 === 0) return { ...line, cover: line.cover.with(0, Buffer.alloc(32)) };
      if (line.position % 83 === 0) return { ...line, fields: line.fields.with(0, { hash: Buffer.alloc(32) }) };
      return line;
    });
    const file = join(folder, 'bundle');
    writeFileSync(file, lines.map(formatLine).join(''));
    const old = join(folder, 'old');
    writeFileSync(old, checkpointOf(bundleOf(leaves.slice(0, 300))));

    const { stdout } = await run(program, [file, key, old], { maxBuffer: 1e8 });
    const said = stdout.trimEnd().split('\n');
    expect(said).toContain('old true');
    expect(said.at(-1)).toBe(`tree ${leaves.length} true`);

    const ours: string[] = [];
    await verifyBundle(
      () => readBundle(file),
      { keys: [key], accept: new Set() },
      ({ from, to, verdict, reason }) => {
        for (let position = from; position <= to; position += 1) ours.push(`${position} ${verdict} ${reason ?? ''}`);
      },
    );
    const wrong = (output: readonly string[], pattern: RegExp) =>
      output.filter((line) => pattern.test(line)).map((line) => Number.parseInt(line, 10));
    const changed = wrong(said, /changed|receipt false/);
    expect(changed.length).toBeGreaterThan(12);
    expect(changed).toEqual(wrong(ours, /not what was sealed|not the one that was sealed/));
    expect(wrong(said, / (gone|none)$/)).toEqual(wrong(ours, / (erased|expired|MISSING) /));
  },
);

test.skipIf(!hasGo)('it also reports a tree that is not the signed one', async () => {
  const made = bundleOf([first, ...Array.from({ length: 9 }, (_, place) => entryOf(place + 2))]);
  const lines = made.lines.map((line) =>
    line.kind === 'entry' && line.position === 4 ? (entryOf(4).line as BundleLine) : line,
  );
  const file = join(folder, 'other');
  writeFileSync(file, lines.map(formatLine).join(''));
  expect((await run(program, [file, key, ''])).stdout.trimEnd().split('\n').at(-1)).toBe('tree 10 false');
});
