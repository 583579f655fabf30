import { expect } from 'vitest';
import type { Entry } from '../oracle/selections.ts';
import type { TestDatabase } from './database.ts';

const second = 1_000;
const minute = 60_000;
const hour = 3_600_000;
const day = 86_400_000;
const cells = [1024 * day, 32 * day, day, hour, minute, second];

/**
 * Every row of a tally counts what is there, and every cell that is dense has its row. Rows of the kinds of an actor
 * are where the actor has many entries, and nowhere else unless an earlier version wrote them; then of all kinds.
 */
export async function checkTallyRows(
  { pool }: TestDatabase,
  tenant: string,
  entries: Entry[],
  { hasEarlierPairs = false } = {},
): Promise<void> {
  const dense = 64;
  const densePairs = 256;
  const counted = new Map<string, Map<number, number>>();
  const inCell = new Map<string, number>();
  const add = (level: number, key: string, { at }: Entry) => {
    const cell = cells[level] ?? 1;
    const child = Math.floor((at % cell) / (cells[level + 1] ?? 1));
    const name = `${level} ${key} ${Math.floor(at / cell)}`;
    const children = counted.get(name) ?? counted.set(name, new Map()).get(name);
    children?.set(child, (children.get(child) ?? 0) + 1);
    inCell.set(name, (inCell.get(name) ?? 0) + 1);
  };
  for (const entry of entries) {
    for (const level of [0, 1, 2, 3, 4]) {
      for (const key of ['0 0', `0 ${entry.kind}`, `${entry.actor} 0`, `${entry.actor} ${entry.kind}`]) {
        add(level, key, entry);
      }
    }
  }
  const { rows } = await pool.query<{
    level: number;
    actor: number;
    kind: number;
    bucket: number;
    children: number[];
    upto: string[];
  }>('select level, actor, kind, bucket, children, upto from change_tally where tenant = $1', [tenant]);
  const there = new Set<string>();
  for (const { level, actor, kind, bucket, children, upto } of rows) {
    const name = `${level} ${actor} ${kind} ${bucket}`;
    there.add(name);
    let sum = 0;
    const running = [...(counted.get(name) ?? [])].sort(([one], [other]) => one - other);
    expect({ name, children, upto: upto.map(Number) }).toEqual({
      name,
      children: running.map(([child]) => child),
      upto: running.map(([, count]) => {
        sum += count;
        return sum;
      }),
    });
  }
  const withPairs = new Set<string>();
  for (const name of there) {
    const [level, actor, kind, bucket] = name.split(' ');
    if (actor !== '0' && kind !== '0') withPairs.add(`${level} ${actor} 0 ${bucket}`);
  }
  for (const [name, count] of inCell) {
    const [level, actor, kind, bucket] = name.split(' ');
    const ofActor = `${level} ${actor} 0 ${bucket}`;
    if (actor !== '0' && kind !== '0') {
      const isDense = (inCell.get(ofActor) ?? 0) >= densePairs;
      const isDue = isDense || (hasEarlierPairs && withPairs.has(ofActor));
      expect({ name, there: there.has(name) }).toEqual({ name, there: isDue });
    } else if (level === '0' || count >= dense) {
      expect({ name, there: there.has(name) }).toEqual({ name, there: true });
    }
  }
}
