import type { ComponentChildren } from 'preact';

/** A state in a word. The word says what the colour says. */
export function Badge({
  tone,
  children,
}: {
  tone: 'plain' | 'good' | 'busy' | 'warn' | 'bad';
  children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
