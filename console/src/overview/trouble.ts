import type { Agent, RequestLog, RequestLogItem } from '@annals/client';

type Cause = NonNullable<RequestLog['cause']>;

/** An agent that the service has disabled, or whose requests failed. */
export interface TroubledAgent {
  readonly id: string;
  readonly disabledReason: string | undefined;
  readonly failures: number;
  /** Why the requests failed, each once. */
  readonly causes: readonly Cause[];
}

/** Puts disabled agents and failed requests together: disabled agents first, then by the number of failures. */
export function troubleOf(
  disabled: readonly Pick<Agent, 'id' | 'disabledReason'>[],
  failed: readonly Pick<RequestLogItem, 'triggerAgentId' | 'cause'>[],
): TroubledAgent[] {
  const found = new Map<string, TroubledAgent>();
  for (const { id, disabledReason } of disabled) found.set(id, { id, disabledReason, failures: 0, causes: [] });
  for (const { triggerAgentId: id = '', cause } of failed) {
    const before = found.get(id) ?? { id, disabledReason: undefined, failures: 0, causes: [] };
    const causes = cause === undefined || before.causes.includes(cause) ? before.causes : [...before.causes, cause];
    found.set(id, { ...before, failures: before.failures + 1, causes });
  }
  const rank = ({ disabledReason, failures }: TroubledAgent) => (disabledReason === undefined ? 0 : 1e9) + failures;
  return [...found.values()].sort((a, b) => rank(b) - rank(a));
}
