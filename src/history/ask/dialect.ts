import { type Dialect, fixedFields } from '../../query/dialect.ts';

/** The fields that `q` of the change history knows (spec A), and the values that each field takes (contract 4). */
export const changelogDialect: Dialect = {
  ...fixedFields({
    entity: { kind: 'text' },
    entityId: { kind: 'text' },
    type: { kind: 'choice', values: ['create', 'update', 'delete'] },
    actor: { kind: 'text' },
    occurredAt: { kind: 'time' },
    'related.entity': { kind: 'text' },
    'related.entityId': { kind: 'text' },
    related: { kind: 'item', item: fixedFields({ entity: { kind: 'text' }, entityId: { kind: 'text' } }) },
    compoundLogicalQuery: { kind: 'group' },
  }),
  needs: [{ field: 'entityId', needs: 'entity', message: 'entity is required when entityId is provided' }],
};
