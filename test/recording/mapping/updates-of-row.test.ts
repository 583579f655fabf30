import { describe, expect, test } from 'vitest';
import { changesOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readRejectedRow } from '../../../src/recording/mapping/rejected-row.ts';
import { mapped, mappingOf, paths, row } from './mapped-rows.ts';

describe('an update', () => {
  test('of the id is a delete of the old and a create of the new, each related to the other', () => {
    const changes = mapped(
      { related: [{ entity: 'c', id: ['c'] }] },
      { before: { id: 7, c: 1, a: 1 }, after: { id: 8, c: 1, a: 2 } },
    );
    expect(changes).toMatchObject([
      {
        change: {
          type: 'delete',
          entityId: '7',
          related: [
            { entity: 'order', entityId: '8' },
            { entity: 'c', entityId: '1' },
          ],
        },
      },
      {
        change: {
          type: 'create',
          entityId: '8',
          related: [
            { entity: 'order', entityId: '7' },
            { entity: 'c', entityId: '1' },
          ],
        },
      },
    ]);
    expect(paths(changes)).toEqual([
      { id: { before: 7 }, c: { before: 1 }, a: { before: 1 } },
      { id: { after: 8 }, c: { after: 1 }, a: { after: 2 } },
    ]);
    const [one, other] = changes.map((change) =>
      change.kind === 'change' ? Buffer.from(change.change.identity) : undefined,
    );
    expect(one).not.toEqual(other);
  });

  test('of the id with the old key alone is the same', () => {
    expect(mapped({}, { before: { id: 7 }, after: { id: 8, a: 2 } })).toMatchObject([
      { tenant: 'acme', change: { type: 'delete', entityId: '7', paths: '{"id":{"before":7}}' } },
      { tenant: 'acme', change: { type: 'create', entityId: '8' } },
    ]);
    expect(mapped({}, { before: { id: 7 }, after: { id: 8, org: 'x' } }, { tenant: { column: 'org' } })).toMatchObject([
      { tenant: 'x', change: { type: 'delete' } },
      { tenant: 'x', change: { type: 'create' } },
    ]);
  });

  test('of the id to or from one that can never be recorded is the other half, and the rejected half is kept as its own row', () => {
    const long = 'x'.repeat(1001);
    const table = { mask: ['card'] };
    const [gone, refused] = mapped(table, { before: { id: 'a', card: '4111' }, after: { id: long, card: '4112' } });
    expect(gone).toMatchObject({ kind: 'change', change: { type: 'delete', entityId: 'a', related: [] } });
    expect(refused).toMatchObject({ kind: 'rejected', tenant: 'acme', reason: 'its id has more than 1000 characters' });
    const kept = readRejectedRow(refused?.kind === 'rejected' ? refused.content : '');
    expect(kept).toMatchObject({ type: 'create', before: undefined, after: row({ id: long, card: '********' }) });
    // A mapping with another id can still record it. It is another change than the delete.
    expect(kept?.identity).not.toEqual(gone?.kind === 'change' ? gone.change.identity : undefined);

    const [old, fresh] = mapped(table, { before: { id: long, card: '4111' }, after: { id: 'b', card: '4111' } });
    expect(old).toMatchObject({ kind: 'rejected', reason: 'its id has more than 1000 characters' });
    expect(readRejectedRow(old?.kind === 'rejected' ? old.content : '')).toMatchObject({ type: 'delete' });
    expect(fresh).toMatchObject({ kind: 'change', change: { type: 'create', entityId: 'b', related: [] } });
    expect(mapped({}, { before: { id: long, a: 1 }, after: { id: long, a: 2 } })).toMatchObject([{ kind: 'rejected' }]);
    expect(mapped({}, { before: { id: 'a' }, after: { id: null } })).toMatchObject([
      { change: { type: 'delete', entityId: 'a' } },
      { kind: 'rejected', tenant: 'acme', reason: 'the column id of its id is null' },
    ]);
  });

  test('of the tenant to none is a delete there, and the create is rejected', () => {
    expect(
      mapped({}, { before: { id: 7, org: 'x' }, after: { id: 7, org: null } }, { tenant: { column: 'org' } }),
    ).toMatchObject([
      { kind: 'change', tenant: 'x', change: { type: 'delete', entityId: '7' } },
      { kind: 'rejected', tenant: undefined, reason: 'the column org of its tenant is null' },
    ]);
  });

  test('of the tenant is a delete there and a create here, without that relation', () => {
    expect(
      mapped({}, { before: { id: 7, org: 'x' }, after: { id: 7, org: 'y' } }, { tenant: { column: 'org' } }),
    ).toMatchObject([
      { tenant: 'x', change: { type: 'delete', related: [] } },
      { tenant: 'y', change: { type: 'create', related: [] } },
    ]);
  });

  describe('of the id or the tenant is', () => {
    const table = { actor: 'who', actorId: 'who_id', correlationId: 'request', context: { ip: 'ip' } };
    const before = { id: 7, org: 'x', who: 'Bob', who_id: 'u-2', request: 'r-1', ip: '10.0.0.1' };
    const after = { id: 8, org: 'x', who: 'Ada', who_id: 'u-1', request: 'r-2', ip: '10.0.0.2' };
    const ada = { actor: 'Ada', actorId: 'u-1', correlationId: 'r-2', context: '{"ip":"10.0.0.2"}' };
    const attributed = (...[change, rest]: [Parameters<typeof mapped>[1], object?]) =>
      mapped(table, change, rest).map((result) => {
        if (result.kind !== 'change') throw new Error('no change');
        const { type, actor, actorId, correlationId, context } = result.change;
        return { type, actor, actorId, correlationId, context, hasActor: result.hasActor };
      });

    test('by who wrote the new row', () => {
      const expected = [
        { type: 'delete', ...ada, hasActor: true },
        { type: 'create', ...ada, hasActor: true },
      ];
      expect(attributed({ before, after })).toEqual(expected);
      expect(attributed({ before: { id: 7 }, after })).toEqual(expected);
    });

    test('by who made the transaction, if it says so', () => {
      const said = attributed({ before, after, who: { actorId: 'u-3' } });
      expect(said).toMatchObject([{ actor: 'unknown', actorId: 'u-3' }, { actorId: 'u-3' }]);
    });

    test.each([
      ['by who wrote the new row', 'x', ada],
      ['by nobody known in the old tenant', 'y', { actor: 'unknown' }],
    ])('%s, also where its delete is rejected first and retried', (_whom, org, expected) => {
      const rest = { tenant: { column: 'org' } };
      const moved = { before: { ...before, id: '', key: 1 }, after: { ...after, org, key: 1, card: '4111' } };
      const [rejected, created] = mapped({ ...table, mask: ['card'] }, moved, rest);
      expect(created).toMatchObject({ change: { type: 'create', ...ada } });
      const content = rejected?.kind === 'rejected' ? rejected.content : '';
      expect(content).not.toContain('4111');
      if (org === 'y') expect(content).not.toContain('Ada');
      const again = readRejectedRow(content);
      if (again === undefined) throw new Error('the rejected row cannot be read');
      const today = { ...table, id: ['key'], actor: 'writer', former: { writer: 'who' } };
      const [deleted, ...others] = changesOfRow(mappingOf(today, rest), again, { actor: 'unknown' });
      expect(others).toEqual([]);
      const { actor, actorId, correlationId, context } = deleted?.kind === 'change' ? deleted.change : {};
      expect({ actor, actorId, correlationId, context }).toEqual(expected);
    });

    test('by nobody known in the old tenant, which sees nothing of the new row', () => {
      const rest = { tenant: { column: 'org' } };
      expect(attributed({ before, after: { ...after, org: 'y' } }, rest)).toEqual([
        { type: 'delete', actor: 'unknown', hasActor: false },
        { type: 'create', ...ada, hasActor: true },
      ]);
      expect(mapped({ actorId: { value: 'billing' } }, { before, after: { ...after, org: 'y' } }, rest)).toMatchObject([
        { tenant: 'x', change: { actorId: 'billing' } },
        { tenant: 'y', change: { actorId: 'billing' } },
      ]);
    });
  });

  test('without before, or with its key alone, has after only', () => {
    const expected = [{ id: { after: 7 }, a: { after: 2 } }];
    expect(paths(mapped({}, { after: { id: 7, a: 2 } }))).toEqual(expected);
    expect(paths(mapped({}, { before: { id: 7 }, after: { id: 7, a: 2 } }))).toEqual(expected);
    expect(paths(mapped({ ignore: ['a'] }, { before: { id: 7 }, after: { id: 7, a: 2 } }))).toMatchObject([
      { kind: 'unchanged' },
    ]);
  });

  test('has what the source did not send from before, and leaves out what neither side gives', () => {
    expect(paths(mapped({}, { before: { id: 7, big: 'x', a: 1 }, after: { id: 7, big: undefined, a: 2 } }))).toEqual([
      { a: { before: 1, after: 2 } },
    ]);
    expect(
      paths(mapped({}, { before: { id: 7, big: undefined, a: 1 }, after: { id: 7, big: undefined, a: 2 } })),
    ).toEqual([{ a: { before: 1, after: 2 } }]);
  });

  test('without before that lacks values has each new value as one, and is not marked as whole', () => {
    const changes = mapped(
      { mask: ['card'] },
      { after: { id: 7, big: undefined, doc: { a: { b: 1 } }, card: 5, 'x.y': 1 } },
    );
    expect(paths(changes)).toEqual([
      { id: { after: 7 }, doc: { after: { a: { b: 1 } } }, card: { after: '********' }, 'x\\.y': { after: 1 } },
    ]);
    expect(changes[0]).not.toHaveProperty('change.marks');
  });
});
