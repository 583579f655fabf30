import { randomBytes } from 'node:crypto';
import type { CorrelationSeal } from '../../../core/correlation-seal.ts';
import { type Condition, list, type Match, match, type Query, type Text, text } from '../../../query/ast.ts';
import { isPresence } from './actor-terms.ts';

/** No correlation id is this text, which an index can say at once. */
const noCorrelation = text(randomBytes(32).toString('base64url'), true);

/**
 * The query of a restricted reader with the correlation ids that its sealed texts stand for. Any other text, also a
 * correlation id itself, matches nothing.
 */
export function withOpenedCorrelations(query: Query, seal: CorrelationSeal | undefined): Query {
  return Object.freeze({ ...query, operands: Object.freeze(query.operands.map((term) => openedTerm(term, seal))) });
}

function openedTerm(condition: Condition, seal: CorrelationSeal | undefined): Condition {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const operands = condition.operands.map((operand) => openedTerm(operand, seal));
      return Object.freeze({ ...condition, operands: Object.freeze(operands) });
    }
    case 'match':
      return condition.field === 'correlationId' ? openedMatch(condition, seal) : condition;
    default:
      return condition;
  }
}

function openedMatch({ field, matcher, position }: Match, seal: CorrelationSeal | undefined): Match {
  const opened = (item: Text): Text => {
    if (isPresence(item)) return item;
    const correlationId = seal?.open(item.text);
    return correlationId === undefined ? noCorrelation : text(correlationId, true);
  };
  switch (matcher.kind) {
    case 'text':
      return match(field, opened(matcher), position);
    case 'list':
      return match(
        field,
        list(matcher.items.map((item) => (item.kind === 'text' ? opened(item) : noCorrelation))),
        position,
      );
    default:
      return match(field, noCorrelation, position);
  }
}
