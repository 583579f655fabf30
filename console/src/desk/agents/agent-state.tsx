import type { Agent } from '@annals/client';
import { Badge } from '../../components/states.tsx';

/** Whether an agent answers, or why not. */
export function AgentState({ agent: { enabled, disabledReason } }: { readonly agent: Agent }) {
  if (enabled) return <Badge tone="good">enabled</Badge>;
  return disabledReason === undefined ? (
    <Badge tone="plain">disabled</Badge>
  ) : (
    <Badge tone="bad">disabled by Annals</Badge>
  );
}
