import { randomBytes } from 'node:crypto';
import { type Attack, changesOf, recordAll, repeatedly, send } from './attack.ts';

/**
 * 16 regular expressions at once on ids of 1,000 characters. PostgreSQL takes milliseconds to match one: the automata
 * have a new state for almost every character. No expression repeats.
 */
export const attack: Attack = {
  row: 10,
  title: 'regular expressions on long ids, 16 at once',

  fill: (db, tenant) =>
    recordAll(
      db,
      tenant,
      changesOf(20_000).map((change, index) => ({ ...change, entity: 'order', entityId: idOf(index) })),
    ),

  async run(attacker, signal) {
    await repeatedly(16, signal, async (place, turn) => {
      const last = (place * 1_000 + turn).toString(3).replaceAll('0', 'x').replaceAll('1', 'y').replaceAll('2', 'z');
      const expression = `.*[ab]+\\w{0,32}[ab]?\\w?[ab]{2,}\\w{1,16}a{1,16}\\w{32}\\w{32}[ab]+${last}$`;
      const q = encodeURIComponent(`entity:order entityId:~${expression}`);
      await send(attacker, 'GET', `/changelog/${attacker.tenant}/changelogs?q=${q}`);
    });
  },
};

/** Of `a`, `b` and digits, and different for each index. */
function idOf(index: number): string {
  return `${index}-${[...randomBytes(1_000)].map((byte) => 'ababa01'[byte % 7]).join('')}`.slice(0, 1_000);
}
