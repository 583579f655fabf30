export { changed, type PathChange, path, type Side, type SideValue } from './changed-fields.ts';
export { Field, type FieldBound, type FieldValue, field, ValueCondition, value } from './document-fields.ts';
export {
  actor,
  actorId,
  changeType,
  context,
  correlationId,
  elemMatch,
  entity,
  entityId,
  occurredAt,
  onBehalfOf,
  onBehalfOfId,
  type RelatedItemMatch,
  relatedEntity,
  relatedEntityId,
  type Time,
} from './history-fields.ts';
export { anyValue, Glob, glob, noValue, Presence, Regex, regex, type TextValue } from './pattern.ts';
export { and, or, Query } from './query.ts';
