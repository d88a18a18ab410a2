// The sign and the name of the program.
export const Logo = () => (
  <>
    <svg viewBox="0 0 20 20" width="18" height="18" role="presentation" aria-hidden="true">
      <rect x="1" y="8" width="3" height="10" rx="1" />
      <rect x="6" y="8" width="3" height="10" rx="1" />
      <rect x="11" y="2" width="3" height="16" rx="1" class="flash" />
      <rect x="16" y="8" width="3" height="10" rx="1" />
    </svg>
    <span>strobe</span>
  </>
);
