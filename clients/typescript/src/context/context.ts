/** On whose behalf the actor acts. */
export interface Person {
  readonly name?: string | undefined;
  readonly id?: string | number | undefined;
}

/** Who makes changes, and what is recorded with them. */
export interface Context {
  /** A name, at most 1,000 characters. */
  readonly actor?: string | undefined;
  /** At most 1,000 characters. */
  readonly actorId?: string | number | undefined;
  readonly onBehalfOf?: Person | undefined;
  /** At most 200 characters. Entries with the same one belong together. */
  readonly correlationId?: string | undefined;
  /** A JSON object of at most 4,096 bytes and 4 levels. */
  readonly context?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * `part` over `base`, member by member. A part with `actor` or `actorId` replaces both and `onBehalfOf`, so that a name
 * never gets the id of somebody else. The members of `context` are merged one by one.
 */
export function mergeContext(base: Context, part: Context | null | undefined): Context {
  if (part === undefined || part === null) return base;
  const { actor, actorId, onBehalfOf, ...rest } = base;
  const isSomebodyElse = part.actor !== undefined || part.actorId !== undefined;
  return {
    ...(isSomebodyElse ? rest : base),
    ...presentOf(part),
    ...(base.context && part.context && { context: { ...base.context, ...part.context } }),
  };
}

function presentOf(part: Context): Context {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined));
}
