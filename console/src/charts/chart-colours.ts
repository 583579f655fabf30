/** The colours of the design for a canvas, as they are now. */
export interface ChartColours {
  readonly text: string;
  readonly grid: string;
  readonly font: string;
  /** The colour of a custom property. */
  readonly of: (property: string) => string;
}

/** A canvas does not know `light-dark()`, so the browser resolves each colour on an element. */
export function chartColours(element: HTMLElement): ChartColours {
  const of = (property: string) => {
    const probe = document.createElement('span');
    probe.style.color = `var(${property})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  return { text: of('--ink-soft'), grid: of('--border'), font: `11px ${getComputedStyle(element).fontFamily}`, of };
}
