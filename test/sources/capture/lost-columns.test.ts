import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noFormer } from '../../../src/recording/mapping/mapping.ts';
import { isLost } from '../../../src/sources/capture/mapping-faults.ts';
import { checkLaw } from '../../support/oracle/law.ts';

/** A column by its number, which it keeps under every name. */
interface Column {
  readonly number: number;
  readonly name: string;
}

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const alteration = fc.oneof(
  fc.record({ kind: fc.constant('rename' as const), place: fc.nat(4), name }),
  fc.record({ kind: fc.constant('drop' as const), place: fc.nat(4), name }),
  fc.record({ kind: fc.constant('add' as const), place: fc.nat(4), name }),
);

/** Each definition of a table that gets these alterations. Those that PostgreSQL would refuse are left out. */
function definitions(alterations: readonly { kind: string; place: number; name: string }[]): Column[][] {
  const all: Column[][] = [['a', 'b', 'c'].map((letter, number) => ({ number, name: letter }))];
  let next = 3;
  for (const { kind, place, name: columnName } of alterations) {
    const columns = all.at(-1) ?? [];
    const isTaken = columns.some((column) => column.name === columnName);
    if (kind === 'drop') all.push(columns.filter((_column, at) => at !== place));
    else if (isTaken) continue;
    else if (kind === 'add') all.push([...columns, { number: next++, name: columnName }]);
    else all.push(columns.map((column, at) => (at === place ? { ...column, name: columnName } : column)));
  }
  return all;
}

const names = (columns: readonly Column[] = []) => columns.map((column) => column.name);

const runs = 100;

function checkNothingHidden(all: Column[][], at: number, masked: string, now: readonly Column[] | undefined): void {
  const [known, found] = [all[0] ?? [], all[Math.min(at, all.length - 1)] ?? []];
  const wasMasked = known.find((column) => column.name === masked);
  if (wasMasked === undefined) return;
  if (isLost(masked, noFormer, { known: names(known), logged: names(found), now: names(now ?? found) })) return;
  const today = found.find(({ number }) => number === wasMasked.number);
  expect(today?.name ?? masked).toBe(masked);
}

describe('a column that the mapping names', () => {
  const steps = fc.tuple(fc.array(alteration, { maxLength: 8 }), fc.nat(8), name);

  // By names alone, a column that takes the name of a dropped one looks like the dropped one.
  test('holds no values under another name if it is not lost, where no column takes the name of a known one', async () => {
    await checkLaw(steps, { runs }, async ([alterations, at, masked]) => {
      const toUnknownNames = alterations.filter(
        ({ kind, name: columnName }) => kind !== 'rename' || columnName === 'd' || columnName === 'e',
      );
      checkNothingHidden(definitions(toUnknownNames), at, masked, undefined);
    });
  });

  test('the same where columns take known names, and none is dropped', async () => {
    await checkLaw(steps, { runs }, async ([alterations, at, masked]) => {
      const kept = alterations.filter(({ kind }) => kind !== 'drop');
      checkNothingHidden(definitions(kept), at, masked, undefined);
    });
  });

  test('the same where the table has changed once more since', async () => {
    await checkLaw(steps, { runs }, async ([alterations, at, masked]) => {
      const all = definitions(alterations.filter(({ kind }) => kind !== 'drop'));
      checkNothingHidden(all, at, masked, all.at(-1));
    });
  });

  test('is not lost where columns are added, before or after the log', async () => {
    await checkLaw(fc.tuple(steps, fc.nat(8)), { runs }, async ([[alterations, one], other]) => {
      const all = definitions(alterations.filter(({ kind }) => kind === 'add'));
      const [known, found] = [all[Math.min(one, all.length - 1)], all[Math.min(other, all.length - 1)]];
      const now = names(all.at(-1));
      for (const column of now) {
        expect(isLost(column, noFormer, { known: names(known), logged: names(found), now })).toBe(false);
        expect(isLost(column, noFormer, { known: undefined, logged: names(found), now })).toBe(false);
      }
    });
  });

  test('is lost where it is renamed or dropped, until the mapping says so', () => {
    const lists = { known: ['id', 'card', 'pin'], logged: ['id', 'card_no'], now: ['id', 'card_no'] };
    for (const column of ['card', 'pin']) expect(isLost(column, noFormer, lists)).toBe(true);
    const former = {
      names: new Map([
        ['card', 'card_no'],
        ['pin', 'pin'],
      ]),
      dropped: new Set(['pin']),
    };
    for (const column of ['card', 'card_no', 'pin']) expect(isLost(column, former, lists)).toBe(false);
  });
});
