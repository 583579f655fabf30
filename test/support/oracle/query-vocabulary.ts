export interface QueryVocabulary {
  readonly entities: readonly string[];
  readonly entityIds: readonly string[];
  readonly actors: readonly string[];
  readonly paths: readonly string[];
  /** Regular expressions, valid by themselves. */
  readonly expressions: readonly string[];
  /** Times that bounds are near, in milliseconds since 1970. */
  readonly times: readonly number[];
}
