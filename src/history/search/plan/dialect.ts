import { type Dialect, fixedFields, type ItemRule } from '../../../query/dialect.ts';

/** The fields that `q` of the change history knows (spec A), and the values that each field takes (contract 4). */
export const changelogDialect: Dialect = {
  ...fixedFields(
    {
      entity: { kind: 'text' },
      entityId: { kind: 'text' },
      type: { kind: 'choice', values: ['create', 'update', 'delete'] },
      actor: { kind: 'text' },
      actorId: { kind: 'text' },
      onBehalfOf: { kind: 'text' },
      onBehalfOfId: { kind: 'text' },
      correlationId: { kind: 'text', exact: true },
      'context.*': { kind: 'text' },
      occurredAt: { kind: 'time' },
      'related.entity': { kind: 'text' },
      'related.entityId': { kind: 'text' },
      path: { kind: 'text', beneath: true },
      related: {
        kind: 'item',
        item: fixedFields({ entity: { kind: 'text' }, entityId: { kind: 'text' } }, 'entity:order'),
      },
      change: {
        kind: 'item',
        item: fixedFields<ItemRule>(
          {
            path: { kind: 'text' },
            before: { kind: 'value', expressions: false },
            after: { kind: 'value', expressions: false },
            is: { kind: 'choice', values: ['lower', 'higher'] },
          },
          'path:price',
        ),
      },
      compoundLogicalQuery: { kind: 'group' },
    },
    'entity:order',
  ),
  needs: [{ field: 'entityId', needs: 'entity', message: 'entity is required when entityId is provided' }],
};
