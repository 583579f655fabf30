/** A line at the top of a part that is being loaded. It takes no room, so nothing moves. */
export function LoadingLine({ active }: { readonly active: boolean }) {
  return (
    <div class={`loading-line${active ? ' active' : ''}`} role="status">
      <span class="visually-hidden">{active ? 'Loading' : ''}</span>
    </div>
  );
}

/** Grey lines in the place of what is not there yet. */
export function Skeleton({ lines = 8 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}
