export { changed, type PathChange, path, type Side, type SideValue } from './changed-fields.ts';
export { Field, type FieldBound, type FieldValue, field, ValueCondition, value } from './document-fields.ts';
export {
  actor,
  changeType,
  elemMatch,
  entity,
  entityId,
  occurredAt,
  type RelatedItemMatch,
  relatedEntity,
  relatedEntityId,
  type Time,
} from './history-fields.ts';
export { Glob, glob, Regex, regex, type TextValue } from './pattern.ts';
export { and, or, Query } from './query.ts';
