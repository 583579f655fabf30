import { randomBytes } from 'node:crypto';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { type Attack, repeatedly } from './attack.ts';

const entries = 20_000;
const idLength = 1_000;
/** Milliseconds. */
const day = 86_400_000;

/**
 * 16 regular expressions at once on ids of 1,000 characters. PostgreSQL matches them, some milliseconds an id: their
 * automata have a new state for almost every character. Each expression is a new one.
 */
export const attack: Attack = {
  row: 10,
  title: 'regular expressions on long ids, 16 at once',

  async fill(db, tenant) {
    const now = Date.now();
    const record = createRecorder(db, tenant, () => now);
    const changes = Array.from({ length: entries }, (_, index) => ({
      identity: randomBytes(16),
      at: now - Math.floor((index * day) / entries),
      type: 'create' as const,
      entity: 'order',
      entityId: idOf(index),
      actor: 'Ann',
      related: [],
      paths: '{}',
    }));
    for (let begin = 0; begin < entries; begin += 2_000) await record(changes.slice(begin, begin + 2_000));
  },

  async run({ tenant, call, count }, signal) {
    await repeatedly(16, signal, async (place, turn) => {
      const last = (place * 1_000 + turn).toString(3).replaceAll('0', 'x').replaceAll('1', 'y').replaceAll('2', 'z');
      const expression = `.*[ab]+\\w{0,32}[ab]?\\w?[ab]{2,}\\w{1,16}a{1,16}\\w{32}\\w{32}[ab]+${last}$`;
      const q = encodeURIComponent(`entity:order entityId:~${expression}`);
      const response = await call(`/changelog/${tenant}/changelogs?q=${q}`);
      await response.arrayBuffer();
      count(response.status);
    });
  },
};

/** Of `a`, `b` and digits, and different for each index. */
function idOf(index: number): string {
  return `${index}-${[...randomBytes(idLength)].map((byte) => 'ababa01'[byte % 7]).join('')}`.slice(0, idLength);
}
