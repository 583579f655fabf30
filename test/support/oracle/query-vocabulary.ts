export interface QueryVocabulary {
  readonly entities: readonly string[];
  readonly entityIds: readonly string[];
  readonly actors: readonly string[];
  readonly paths: readonly string[];
  /** Names of what an actor may have beside the name, correlation ids, and values of contexts; default: none. */
  readonly who?: {
    readonly names: readonly string[];
    readonly correlations: readonly string[];
    readonly values: readonly string[];
  };
  /** Regular expressions, valid by themselves. */
  readonly expressions: readonly string[];
  /** Times that bounds are near, in milliseconds since 1970. */
  readonly times: readonly number[];
}
