import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commitmentOf, commitmentOfEntry, entryLeaf, hashField } from '../../../src/proof/log/commitment.ts';
import { countOfFields, type EntryFields, fieldsOf, labelsOf, splitPaths } from '../../../src/proof/log/fields.ts';
import { newSeed, saltCover, saltsOf } from '../../../src/proof/log/salts.ts';
import { entryAt } from './made-bundles.ts';

interface Vector {
  position: number;
  seed: string;
  hidden: string[];
  entry: {
    identity: string;
    context?: string;
    time: string;
    type: string;
    entity: string;
    entityId: string;
    name?: string;
    schemaVersion?: string;
    actor: string;
    recordedBy?: string;
    marks?: string;
    actorId?: string;
    onBehalfOfName?: string;
    onBehalfOfId?: string;
    correlationId?: string;
    related: (string | null)[];
    paths: (string | null)[];
  };
  commitment: string;
  leafHash: string;
  cover: string[];
  firstHash: string;
  lastHash: string;
}

const page = readFileSync(new URL('../../../docs/proof.md', import.meta.url), 'utf8');
const vectors: Vector[] = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? '[]');
const program = fileURLToPath(new URL('commitment-vectors.py', import.meta.url));
const python = spawnSync('python3', ['--version']).status === 0;

/** The text of `paths` with these parts. */
function pathsText(parts: readonly (string | null)[]): string {
  if (parts.length === 3 && parts[0] === null) return parts[2] ?? '';
  const members: string[] = [];
  for (let at = 0; at < parts.length; at += 3) {
    const [path, before, after] = parts.slice(at, at + 3);
    const sides = [before === null ? [] : [`"before":${before}`], after === null ? [] : [`"after":${after}`]].flat();
    members.push(`${path}:{${sides.join(',')}}`);
  }
  return `{${members.join(',')}}`;
}

function relatedText([entity, entityId, ...others]: readonly (string | null)[]): string | null {
  if (entityId === undefined) return null;
  if (entity === null) return entityId;
  expect(others).toEqual([]);
  return JSON.stringify([{ entity, entityId }]);
}

function fieldsOfVector({ entry }: Vector): EntryFields {
  return fieldsOf({
    identity: entry.identity,
    context: entry.context ?? null,
    at: Number(entry.time),
    type: entry.type,
    entity: entry.entity,
    entityId: entry.entityId,
    name: entry.name ?? null,
    schemaVersion: entry.schemaVersion ?? null,
    actor: entry.actor,
    actorId: entry.actorId ?? null,
    onBehalfOfName: entry.onBehalfOfName ?? null,
    onBehalfOfId: entry.onBehalfOfId ?? null,
    correlationId: entry.correlationId ?? null,
    recordedBy: entry.recordedBy ?? null,
    marks: entry.marks ?? null,
    related: relatedText(entry.related),
    paths: pathsText(entry.paths),
  });
}

/** The concatenated hashes of all fields, as shown. */
function hashesOf(fields: EntryFields, seed: Buffer): Buffer[] {
  const salts = saltsOf({ seed }, countOfFields(fields));
  return labelsOf(fields).map((label, index) => hashField(label, fields.texts[index] ?? null, salts[index] as Buffer));
}

const jsonText = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value));
const shownFields = fc.array(fc.boolean(), { minLength: 11, maxLength: 70 });

describe('the commitment to an entry', () => {
  it('matches the vectors in the documentation', () => {
    expect(vectors.length).toBeGreaterThan(6);
    for (const vector of vectors) {
      const seed = Buffer.from(vector.seed, 'hex');
      const fields = fieldsOfVector(vector);
      const labels = labelsOf(fields);
      const commitment = commitmentOfEntry(fields, seed);
      expect(commitment.toString('base64')).toBe(vector.commitment);
      const leaf = Buffer.concat([Buffer.of(0), Buffer.from(entryLeaf(vector.position, commitment))]);
      expect(createHash('sha256').update(leaf).digest('hex')).toBe(vector.leafHash);
      const hashes = hashesOf(fields, seed);
      expect([hashes.at(0)?.toString('hex'), hashes.at(-1)?.toString('hex')]).toEqual([
        vector.firstHash,
        vector.lastHash,
      ]);
      expect(commitmentOf(fields, hashes)).toEqual(commitment);
      const isFirst = (index: number) => labels.indexOf(labels[index] as (typeof labels)[number]) === index;
      const shown = labels.map((label, index) => !(vector.hidden.includes(label) && isFirst(index)));
      const cover = saltCover({ seed }, labels.length, shown);
      expect(cover.map((node) => node.toString('hex'))).toEqual(vector.cover);
    }
  });

  it.skipIf(!python)('matches an implementation in Python (needs python3)', () => {
    const inputs = vectors.map(({ position, seed, hidden, entry }) => ({ position, seed, hidden, entry }));
    const { stdout } = spawnSync('python3', [program], { input: JSON.stringify(inputs), encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual(vectors);
  });

  it('differs with each column that differs', () => {
    const seed = newSeed();
    for (const vector of [vectors[1], vectors[4]]) {
      const { texts, ...counts } = fieldsOfVector(vector as Vector);
      const changed = texts.flatMap((text, index) =>
        [null, '', `${text}x`].filter((other) => other !== text).map((other) => texts.with(index, other)),
      );
      const made = [texts, ...changed].map((one) => commitmentOfEntry({ ...counts, texts: one }, seed).toString('hex'));
      expect(new Set(made).size).toBe(made.length);
    }
  });

  it('differs between any two ways to fill the fields that an entry may lack', () => {
    const entry = entryAt(5);
    const text = fc.constantFrom(null, '', 'a', 'b', 'actorId=a', 'annals');
    const parts = fc.tuple(text, text, text, text, fc.constantFrom(null, entry.related));
    const seed = newSeed();
    const commitmentTo = ([actorId, onBehalfOfName, onBehalfOfId, correlationId, related]: (string | null)[]) => {
      const filled = { actorId, onBehalfOfName, onBehalfOfId, correlationId, related } as Partial<typeof entry>;
      return commitmentOfEntry(fieldsOf({ ...entry, ...filled }), seed).toString('hex');
    };
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(parts, (filled) => {
        const commitment = commitmentTo(filled);
        expect(seen.get(commitment) ?? JSON.stringify(filled)).toBe(JSON.stringify(filled));
        seen.set(commitment, JSON.stringify(filled));
      }),
      { numRuns: 500 },
    );
  });

  it('has four fields more only where an entry has one of them', () => {
    const none = { ...entryAt(5), actorId: null, onBehalfOfName: null, onBehalfOfId: null, correlationId: null };
    expect(fieldsOf(none)).toMatchObject({ version: 1 });
    for (const member of ['actorId', 'onBehalfOfName', 'onBehalfOfId', 'correlationId']) {
      const { version, texts } = fieldsOf({ ...none, [member]: '' });
      expect([version, texts.length]).toEqual([2, fieldsOf(none).texts.length + 4]);
    }
  });

  it('takes long texts as well as short ones', () => {
    const salt = newSeed();
    for (const text of ['é'.repeat(1361), 'é'.repeat(1362), 'x'.repeat(4089), 'x'.repeat(200_000)]) {
      const expected = createHash('sha256');
      const pad = (byte: number) => Buffer.alloc(64, byte).map((one, index) => one ^ (salt[index] ?? 0));
      const inner = createHash('sha256').update(pad(0x36)).update(`after=${text}`).digest();
      expect(hashField('after', text, salt)).toEqual(expected.update(pad(0x5c)).update(inner).digest());
    }
  });
});

describe('the text of paths', () => {
  it('is rebuilt from its fields, whatever it contains', () => {
    const side = fc.option(jsonText);
    const usual = fc
      .array(
        fc.tuple(
          fc.string().map((name) => JSON.stringify(name)),
          side,
          side,
        ),
      )
      .map((paths) => paths.flat())
      .map(pathsText);
    const cut = fc.tuple(usual, fc.nat(40), fc.constantFrom('', ' ', '"', ',', '}', '{')).map(([text, at, by]) => {
      return text.slice(0, at) + by + text.slice(at + 1);
    });
    fc.assert(
      fc.property(fc.oneof(usual, cut, fc.string()), (text) => {
        expect(pathsText(splitPaths(text))).toBe(text);
      }),
    );
    expect(splitPaths('{"a\\"}":{"before":"}\\\\","after":[{"b":"]"}]},"c":{}}')).toEqual([
      ...['"a\\"}"', '"}\\\\"', '[{"b":"]"}]'],
      ...['"c"', null, null],
    ]);
    expect(splitPaths('{"a":{"after":1,"before":2}}')).toEqual([null, null, '{"a":{"after":1,"before":2}}']);
    expect(splitPaths('{"a":{"before":1,"after":2,"more":3}}')[0]).toBeNull();
  });
});

describe('a cover', () => {
  it('yields the salts of exactly the shown fields, and can be reduced to a smaller cover', () => {
    const seed = newSeed();
    fc.assert(
      fc.property(shownFields, fc.infiniteStream(fc.boolean()), (shown, others) => {
        const fields = shown.length;
        const salts = saltsOf({ seed }, fields);
        const cover = saltCover({ seed }, fields, shown);
        expect(saltsOf({ cover, shown }, fields)).toEqual(salts.map((salt, index) => (shown[index] ? salt : null)));
        expect(cover).not.toContainEqual(seed);
        const fewer = shown.map((one) => one && others.next().value === true);
        expect(saltCover({ cover, shown }, fields, fewer)).toEqual(saltCover({ seed }, fields, fewer));
        const hidden = shown.indexOf(false);
        if (hidden === -1) return;
        expect(() => saltCover({ cover, shown }, fields, shown.with(hidden, true))).toThrow(RangeError);
        expect(() => saltsOf({ cover: [...cover, seed], shown }, fields)).toThrow(RangeError);
        if (cover.length > 0) expect(() => saltsOf({ cover: cover.slice(1), shown }, fields)).toThrow(RangeError);
      }),
    );
  });
});
