import type { RequestLog } from '@annals/client';

type Cause = NonNullable<RequestLog['cause']>;

const causes: Readonly<Record<Cause, string>> = {
  quota_exhausted: 'the quota is used up',
  rate_limited: 'the provider was asked too often',
  context_length_exceeded: 'the conversation is longer than the model takes',
  content_filtered: 'the provider filtered the answer',
  authentication: 'the provider refuses the key',
  model_not_found: 'the provider does not know the model',
  unreachable: 'the server cannot be reached',
  timeout: 'the provider did not answer in time',
  bad_answer: 'the provider’s answer cannot be used',
  cancelled: 'the chat was stopped',
};

/** Why a request failed, in words. */
export function causeText(cause: Cause): string {
  return causes[cause];
}

/** A duration in the unit that fits: `850 ms`, `2.4 s`, `3 min 5 s`. */
export function durationText(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
