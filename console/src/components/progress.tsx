interface ProgressProps {
  /** Between 0 and 1; undefined where nobody knows. */
  readonly share: number | undefined;
  readonly label: string;
}

/** How far something is, or how much of something is used. */
export function Progress({ share, label }: ProgressProps) {
  const percent = share === undefined ? undefined : Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <div
      class={`progress${percent === undefined ? ' unknown' : ''}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(percent === undefined ? {} : { 'aria-valuenow': percent })}
    >
      <span style={{ width: `${percent ?? 30}%` }} />
    </div>
  );
}
