import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../../../src/core/json/parse.ts';
import { readMapping } from '../../../../src/recording/mapping/read-mapping.ts';
import { changesOfEvent, type EventResult } from '../../../../src/sources/recorder/debezium/changes-of-event.ts';
import { type EventHeaders, readDebeziumEvent } from '../../../../src/sources/recorder/debezium/read-event.ts';

export type Members = Record<string, unknown>;

export const mapping = readMapping(
  JSON.stringify({
    version: 1,
    tables: {
      'public.customers': { entity: 'customer', id: ['id'], name: 'last_name', mask: ['email'] },
      'inventory.customers': { entity: 'client', id: ['id'] },
      's1.a': { entity: 'a', id: ['pk'] },
    },
  }),
);
export const mongodb = readMapping(
  '{"version":1,"tables":{"inventory.customers":{"entity":"customer","mask":["card"]}}}',
);

/** By name, as `samples.md` lists them. */
const samples = new Map(
  readFileSync(join(import.meta.dirname, 'samples.ndjson'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map((line): [string, Members] => [line.sample, line.event]),
);

export function sample(name: string): Members {
  const event = samples.get(name);
  if (event === undefined) throw new Error(`there is no sample ${name}`);
  return structuredClone(event);
}

export function resultOf(event: unknown, of = mapping, headers: EventHeaders = {}): EventResult {
  const read = readDebeziumEvent(parseJson(JSON.stringify(event)));
  if (read === undefined) throw new Error('this is no event of Debezium');
  return changesOfEvent(of, read, headers, { actor: 'debezium' });
}

/** The only change of an event, its paths parsed. */
export function changeOf(event: unknown, of = mapping, headers: EventHeaders = {}) {
  const result = resultOf(event, of, headers);
  const [mapped] = result.kind === 'changes' ? result.changes : [];
  if (mapped?.kind !== 'change') throw new Error(JSON.stringify(result));
  const { paths, ...change } = mapped.change;
  return { ...change, paths: JSON.parse(paths) };
}

export function identityOf(event: unknown, of = mapping): string {
  return Buffer.from(changeOf(event, of).identity).toString('hex');
}

/** The event with other members in its `source`. */
export function from(event: Members, source: Members): Members {
  return { ...event, source: { ...(event.source as Members), ...source } };
}
