import { Readable } from 'node:stream';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Change, Outcome, RecordChanges } from '../../../src/recording/change.ts';
import { maximumLineBytes } from '../../../src/recording/lines.ts';
import { ImportStoppedError, importChanges } from '../../../src/sources/import/import.ts';

/** Records into memory by the rule of the recorder: identity and time tell a change, its content a conflict. */
class MemoryRecorder {
  readonly changes = new Map<string, Change>();
  readonly sizes: number[] = [];
  atOnce = 0;
  maxAtOnce = 0;

  readonly record: RecordChanges = async (batch) => {
    this.sizes.push(batch.length);
    this.atOnce += 1;
    this.maxAtOnce = Math.max(this.maxAtOnce, this.atOnce);
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.atOnce -= 1;
    return batch.map((change) => this.#outcomeOf(change));
  };

  #outcomeOf(change: Change): Outcome {
    if (change.at < Date.UTC(2000, 0, 1)) return 'expired';
    const key = `${Buffer.from(change.identity).toString('hex')} ${change.at}`;
    const there = this.changes.get(key);
    if (there === undefined) this.changes.set(key, change);
    if (there === undefined) return 'recorded';
    return JSON.stringify(there) === JSON.stringify(change) ? 'duplicate' : 'conflict';
  }
}

async function run(source: Buffer | string | Readable, recorder: { record: RecordChanges } = new MemoryRecorder()) {
  const rejected: [number, string][] = [];
  const counts = await importChanges({
    source: source instanceof Readable ? source : Readable.from([Buffer.from(source)], { objectMode: false }),
    record: recorder.record,
    onRejected: (number, reason) => rejected.push([number, reason]),
  });
  return { counts, rejected };
}

const line = (members: object) =>
  JSON.stringify({ op: 'insert', entity: 'order', entityId: '1', at: '2024-05-06T07:08:09Z', ...members });

const none = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, rejected: 0 };

/** Lines of every kind, mixed by a fixed rule, and what should become of them. */
function mixedLines(count: number) {
  const expected = { ...none };
  const rejected: number[] = [];
  const lines: string[] = [];
  for (let number = 1; number <= count; number += 1) {
    const id = `id ${number}`;
    const kind = (number * 7919) % 10;
    if (kind === 0) lines.push('');
    else {
      expected.read += 1;
      if (kind === 1) {
        lines.push(line({ id, op: 'update', before: { a: [1, 2] }, after: { a: [1, 2] } }));
        expected.unchanged += 1;
      } else if (kind === 2) {
        lines.push(line({ id, op: 'upsert' }));
        expected.rejected += 1;
        rejected.push(number);
      } else if (kind === 3) {
        lines.push(line({ id, at: '1999-01-01T00:00:00Z' }));
        expected.expired += 1;
      } else if (kind === 4 && number > 10) {
        lines.push(line({ id: 'id 5', op: 'update', after: { number: 5 } }));
        expected.duplicate += 1;
      } else if (kind === 5 && number > 10) {
        lines.push(line({ id: 'id 5', op: 'update', after: { number } }));
        expected.rejected += 1;
        rejected.push(number);
      } else {
        lines.push(line({ id, op: 'update', after: { number } }));
        expected.recorded += 1;
      }
    }
  }
  return { lines, expected, rejected };
}

describe('what is counted', () => {
  test('each line is counted once, by its outcome', async () => {
    const { lines, expected, rejected } = mixedLines(7000);
    const recorder = new MemoryRecorder();
    const result = await run(lines.join('\n'), recorder);
    expect(result.counts).toEqual(expected);
    expect(result.rejected.map(([number]) => number).sort((one, other) => one - other)).toEqual(rejected);
    expect(recorder.changes.size).toBe(expected.recorded);
    const { read, ...outcomes } = result.counts;
    expect(Object.values(outcomes).reduce((sum, each) => sum + each)).toBe(read);
  });

  test('a second run records nothing twice, lines without an id included', async () => {
    const text = [line({ after: 1 }), line({ after: 1 }), line({ after: 2 }), line({ id: 'a' })].join('\r\n');
    const recorder = new MemoryRecorder();
    expect((await run(text, recorder)).counts).toEqual({ ...none, read: 4, recorded: 4 });
    expect((await run(text.replaceAll('\r', ''), recorder)).counts).toEqual({ ...none, read: 4, duplicate: 4 });
    expect(recorder.changes.size).toBe(4);
  });

  test('the same id and time with other content is rejected, at another time it is another change', async () => {
    const text = [
      line({ id: 'a', after: 1 }),
      line({ id: 'a', after: 2 }),
      line({ id: 'a', after: 2, at: '2024-05-06T07:08:10Z' }),
    ].join('\n');
    const { counts, rejected } = await run(text);
    expect(counts).toEqual({ ...none, read: 3, recorded: 2, rejected: 1 });
    expect(rejected).toEqual([[2, 'has the id and time of another change with other content']]);
  });

  test('an empty source has nothing in it', async () => {
    expect((await run('')).counts).toEqual(none);
    expect((await run('\n\n')).counts).toEqual(none);
    expect((await run(Readable.from([]))).counts).toEqual(none);
  });

  test('a line of 16 MiB is recorded, and a longer one rejected', async () => {
    const empty = line({ id: 'a', after: '' });
    const full = line({ id: 'a', after: 'x'.repeat(maximumLineBytes - empty.length) });
    const { counts, rejected } = await run(`${full}\n${full} \n${line({})}`);
    expect(counts).toEqual({ ...none, read: 3, recorded: 2, rejected: 1 });
    expect(rejected).toEqual([[2, 'is longer than 16 MiB']]);
  });
});

describe('batches', () => {
  test('are recorded one after the other, and none is too large', async () => {
    const recorder = new MemoryRecorder();
    await run([...Array(5000).keys()].map((id) => line({ id: `${id}` })).join('\n'), recorder);
    expect(recorder.sizes).toEqual([2000, 2000, 1000]);
    expect(recorder.maxAtOnce).toBe(1);
    const large = new MemoryRecorder();
    await run([...Array(20).keys()].map((id) => line({ id: `${id}`, after: 'x'.repeat(2 ** 20) })).join('\n'), large);
    expect(large.sizes).toEqual([8, 8, 4]);
  });

  test('the next is read while one is being recorded', async () => {
    const events: string[] = [];
    let release = () => {};
    const rows = [...Array(4001).keys()].map((id) => `${line({ id: `${id}` })}\n`);
    const source = Readable.from(
      (function* () {
        yield Buffer.from(rows.slice(0, 2000).join(''));
        yield Buffer.from(rows.slice(2000, 3999).join(''));
        events.push('read on');
        release();
        yield Buffer.from(rows.slice(3999).join(''));
      })(),
      { highWaterMark: 1 },
    );
    const record: RecordChanges = async (batch) => {
      events.push('recording');
      if (!events.includes('read on')) {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      events.push('recorded');
      return batch.map(() => 'recorded');
    };
    await run(source, { record });
    expect(events.slice(0, 3)).toEqual(['recording', 'read on', 'recorded']);
  });
});

test('what a pipe has brought is recorded after half a second without more, while the pipe stays open', async () => {
  const recorder = new MemoryRecorder();
  const source = new Readable({ read() {} });
  source.push(`${line({ id: 'a' })}\n${line({ id: 'b' })}\n${line({ id: 'c' }).slice(0, 9)}`);
  const importing = run(source, recorder);
  await expect.poll(() => recorder.sizes).toEqual([2]);
  source.push(line({ id: 'c' }).slice(9));
  source.push(null);
  expect((await importing).counts).toEqual({ ...none, read: 3, recorded: 3 });
  expect(recorder.sizes).toEqual([2, 1]);
});

describe('compressed sources', () => {
  const { lines, expected } = mixedLines(800);
  const text = Buffer.from(lines.join('\n'));
  // Zstandard gives nothing before the end of a block of 128 KiB.
  const long = mixedLines(3000);
  const longText = Buffer.from(long.lines.join('\n'));
  const skippableFrame = Buffer.from('502a4d180400000061626364', 'hex');

  test.each([
    ['gzip', gzipSync(text)],
    ['Zstandard', zstdCompressSync(text)],
    ['several gzip members', Buffer.concat([gzipSync(text.subarray(0, 1000)), gzipSync(text.subarray(1000))])],
    [
      'several Zstandard frames',
      Buffer.concat([zstdCompressSync(text.subarray(0, 999)), zstdCompressSync(text.subarray(999))]),
    ],
    ['Zstandard as pzstd writes it', Buffer.concat([skippableFrame, zstdCompressSync(text), skippableFrame])],
  ])('%s is recognized by its first bytes', async (_, compressed) => {
    expect((await run(compressed)).counts).toEqual(expected);
    const single = Readable.from(
      [...compressed.subarray(0, 9)].map((byte) => Buffer.from([byte])).concat(compressed.subarray(9)),
    );
    expect((await run(single)).counts).toEqual(expected);
  });

  test.each([
    ['bytes that are none', Buffer.from('something else')],
    ['a damaged frame', zstdCompressSync(text).fill(0, 0, 4)],
  ])(
    'of Zstandard with %s after a whole frame, what comes before is recorded, and the end is an error',
    async (_, tail) => {
      const recorder = new MemoryRecorder();
      const importing = run(Buffer.concat([zstdCompressSync(text), tail]), recorder);
      const error: unknown = await importing.catch((reason: unknown) => reason);
      if (!(error instanceof ImportStoppedError)) throw error;
      expect(error.message).toBe(
        'the input could not be read to its end: data that is not Zstandard follows the last frame',
      );
      expect(error.counts.recorded).toBe(expected.recorded);
    },
  );

  test.each([
    ['gzip', gzipSync(longText)],
    ['Zstandard', zstdCompressSync(longText)],
  ])('of %s that is cut off, what comes before the cut is recorded, and the end is an error', async (_, compressed) => {
    const recorder = new MemoryRecorder();
    const importing = run(compressed.subarray(0, Math.floor(compressed.length * 0.6)), recorder);
    const error: unknown = await importing.catch((reason: unknown) => reason);
    if (!(error instanceof ImportStoppedError)) throw error;
    expect(error.message).toBe('the input could not be read to its end: unexpected end of file');
    expect(error.counts.recorded).toBe(recorder.changes.size);
    expect(error.counts.recorded).toBeGreaterThan(0);
    // The line that the cut went through is neither recorded nor rejected.
    expect(error.counts.read).toBeLessThan(long.expected.read);
    const whole = await run(compressed, recorder);
    expect(whole.counts.recorded + error.counts.recorded).toBe(long.expected.recorded);
  });
});

describe('an import that is stopped', () => {
  const rows = [...Array(5000).keys()].map((id) => line({ id: `${id}` })).join('\n');

  test('by its recorder reports what was recorded before', async () => {
    let calls = 0;
    const record: RecordChanges = async (batch) => {
      calls += 1;
      if (calls === 2) throw new Error('the database went away');
      return batch.map(() => 'recorded');
    };
    const error: unknown = await run(rows, { record }).catch((reason: unknown) => reason);
    if (!(error instanceof ImportStoppedError)) throw error;
    expect(error.message).toBe('recording failed: the database went away');
    expect(error.counts.recorded).toBe(2000);
    expect(calls).toBe(2);
  });

  test('by its source keeps all that came before', async () => {
    const source = Readable.from(
      (async function* () {
        yield Buffer.from(`${rows}\n${rows.slice(0, 50)}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
        throw new Error('the disk is gone');
      })(),
    );
    const recorder = new MemoryRecorder();
    const error: unknown = await run(source, recorder).catch((reason: unknown) => reason);
    if (!(error instanceof ImportStoppedError)) throw error;
    expect(error.counts).toEqual({ ...none, read: 5000, recorded: 5000 });
  });

  test('by its signal does not wait for a source that says nothing', async () => {
    const recorder = new MemoryRecorder();
    const source = new Readable({ read() {} });
    source.push(`${line({ id: 'a' })}\n`);
    const stop = new AbortController();
    const importing = importChanges({
      source,
      record: recorder.record,
      onRejected: () => {},
      // The line has been read; by then it waits for another one.
      onProgress: () => setTimeout(() => stop.abort(), 20),
      signal: stop.signal,
    });
    const error: unknown = await importing.catch((reason: unknown) => reason);
    if (!(error instanceof ImportStoppedError)) throw error;
    expect(error.message).toMatch(/interrupted$/);
    expect(error.counts).toEqual({ ...none, read: 1, recorded: 1 });
    expect(source.destroyed).toBe(true);
  });
});
