import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { signCheckpoint } from '../../src/history/proof/tlog/checkpoint.ts';
import { MerkleFold, rootOf } from '../../src/history/proof/tlog/merkle.ts';
import { tileWidth } from '../../src/history/proof/tlog/tiles.ts';
import type { BundleLine } from '../../src/history/proof/verify/lines.ts';
import { readBundle } from '../../src/history/proof/verify/read-bundle.ts';
import { verifyBundle } from '../../src/history/proof/verify/verify-bundle.ts';
import { formatLine } from '../../src/history/proof/verify/write-bundle.ts';
import { entryOf, first, key, log } from '../../test/history/proof/made-bundles.ts';

// The processor time and the memory that `annals verify` takes for a bundle of so many entries with two paths.
const { values: settings } = parseArgs({
  options: { entries: { type: 'string', default: '1000000' }, file: { type: 'string' }, key: { type: 'string' } },
});

if (settings.file === undefined) {
  const file = join(tmpdir(), `annals-verify-${process.pid}.bundle`);
  try {
    makeBundle(file, Number(settings.entries));
    spawnSync(process.execPath, [import.meta.filename, '--file', file, '--key', key], { stdio: 'inherit' });
  } finally {
    rmSync(file, { force: true });
  }
} else {
  const path = settings.file;
  const trusted = { keys: [settings.key ?? ''], accept: new Set<string>() };
  const { isRight, counts } = await verifyBundle(
    () => readBundle(path),
    trusted,
    () => {},
  );
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const verified = counts.get('verified') ?? 0;
  const seconds = (userCPUTime + systemCPUTime) / 1e6;
  const microseconds = Math.round((seconds * 1e6) / verified);
  process.stdout.write(
    `${JSON.stringify({ isRight, verified, seconds, microseconds, megabytes: Math.round(maxRSS / 1024) })}\n`,
  );
}

function makeBundle(path: string, entries: number): void {
  const file = openSync(path, 'w');
  const size = entries + 1;
  const header = (root: Buffer): BundleLine => {
    const checkpoint = signCheckpoint({ origin: log.name, size, root }, log);
    return { kind: 'header', checkpoint, from: 1, to: size, q: null };
  };
  let at = writeSync(file, formatLine(header(Buffer.alloc(32))), 0);
  let text = formatLine({ kind: 'receipt text', position: 1, text: first.text });
  const fold = new MerkleFold();
  let block: Buffer[] = [];
  for (let position = 1; position <= size; position += 1) {
    const { line, hash } = position === 1 ? first : entryOf(position);
    fold.add(hash);
    block.push(hash);
    text += formatLine(line);
    if (block.length === tileWidth) {
      text += formatLine({ kind: 'tile', index: position / tileWidth - 1, hash: rootOf(block) });
      block = [];
    }
    if (text.length < 1024 * 1024) continue;
    at += writeSync(file, text, at);
    text = '';
  }
  writeSync(file, text + formatLine({ kind: 'end', size }), at);
  // As long as the one that it replaces.
  writeSync(file, formatLine(header(fold.root())), 0);
  closeSync(file);
}
