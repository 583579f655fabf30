import type { CompletionUsage } from '@annals/client';
import { countText } from './numbers.ts';
import { Progress } from './states.tsx';

/** How much of the tenant's quota is used. It is for the tenant's lifetime. */
export function QuotaBars({ usage }: { readonly usage: CompletionUsage }) {
  return (
    <div class="quota">
      {usage.token === 'own' ? (
        <p class="muted">Your own provider key is in use. Its tokens are not counted here.</p>
      ) : undefined}
      {usage.token === 'none' ? (
        <p class="muted">There is no token: set providerApiToken in the configuration, or ask the operator.</p>
      ) : undefined}
      <QuotaBar label="Input tokens" part="inputTokens" usage={usage} />
      <QuotaBar label="Output tokens" part="outputTokens" usage={usage} />
    </div>
  );
}

interface QuotaBarProps {
  readonly label: string;
  readonly part: 'inputTokens' | 'outputTokens';
  readonly usage: CompletionUsage;
}

function QuotaBar({ label, part, usage: { limits, used, reserved, left } }: QuotaBarProps) {
  const share = limits[part] === 0 ? 1 : (used[part] + reserved[part]) / limits[part];
  const waiting = reserved[part] === 0 ? '' : `, ${countText(reserved[part])} reserved`;
  return (
    <div class={`quota-bar${share >= 0.9 ? ' near' : ''}`}>
      <p>
        <span>{label}</span>
        <span class="number muted">
          {countText(used[part])} of {countText(limits[part])}
          {waiting}
        </span>
      </p>
      <Progress share={share} label={`${label} used`} />
      <p class="muted number">{countText(left[part])} left</p>
    </div>
  );
}
