import { Type } from 'typebox';
import { queryInteger } from '../../http/query-parameters.ts';

const fields = [Type.Literal('entity'), Type.Literal('actor'), Type.Literal('related.entity')] as const;

export const NamesQuery = Type.Object({
  field: Type.Union([...fields], {
    type: 'string',
    'x-message': 'field must be one of entity, actor, related.entity',
  }),
  prefix: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: 'The prefix of the names, case-insensitive. Default: any name.',
      'x-message': 'prefix must have at most 1000 characters',
    }),
  ),
  size: Type.Optional(
    queryInteger({ minimum: 1, maximum: 100, default: 20, message: 'size must be between 1 and 100' }),
  ),
});

export const NamesAnswer = Type.Object(
  {
    field: Type.Union([...fields]),
    values: Type.Array(Type.String(), { description: 'In the order of code points.' }),
  },
  { $id: 'ChangeNames', examples: [{ field: 'actor', values: ['Jane Doe', 'jane.smith'] }] },
);
